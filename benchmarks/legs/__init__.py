"""One leg is one process that does one workload with one queue and prints what it measured as JSON."""
