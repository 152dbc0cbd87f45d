"""What happens to a job, decided by pure functions: no I/O, no clock, no chance."""
