"""Stacks that were sampled in a guest: the profiler's log, folded stacks, their differences, flame graphs."""
