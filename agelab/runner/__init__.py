"""Runs: the cells of one command, each in a fresh guest."""
