"""The real store, broker and client in worlds that one seed decides, until a promise breaks.

A *run* (``run.py``) is one seed. It draws a *world* (``swarm.py``): how many processes, producers, workers and operators
there are, which faults strike and how often, and the product's own numbers. Everything runs on an event loop with
virtual time (``loop.py``): each simulated process has its own line of calls, the seed says whose turn it is, and a process
can crash between any two of its calls, stand still for longer than a lease, or be wrong about the time (``clock.py``).
The bucket (``bucket.py``) refuses, loses answers, doubles, delays and is full. People (``people.py``) live outside and
never crash; what they are told goes into a *ledger*. After a while all faults stop and everything must settle.

Then the checks (``checks.py``) compare the ledger with the *evidence*, the log as the bucket ever held it, read without the
store: ``lawful.py`` says what every log must be, ``truthful.py`` what every answer must be, ``penstock.domain.verify`` is
asked as well. A fault begins with the promise it breaks (G1 to G16). A run that does not end is broken off by calls
made, virtual time and processor time, and that is a fault too.

``planted/`` proves that the checks see something: each bug in it replaces one function of the product, and must be found
by the promise it breaks, in worlds that pass without it. ``coverage.py`` counts the awaits that a crash has crossed.

    make sim MINUTES=5                      new seeds, some of them in the worlds of the planted bugs
    make sim SEED=361                       one seed again, with all that happened in it
    make sim SEED=23 WORLD="a job twice in line"     the same in the worlds of that bug, without the bug
    make sim SEED=0 BUG="a job twice in line"        the same with the bug

The same seed gives the same history, whatever the interpreter's hash seed; a change of the product or of the simulation
gives it another. A seed that fails prints the command that replays it and is kept in ``seeds.txt``, to be run first from
then on.
"""
