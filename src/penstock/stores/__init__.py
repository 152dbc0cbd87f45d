"""Where jobs live. Every store keeps the promise written in ``port.py``."""
