"""Capsules: a run in one file, from which it can be carried out once more anywhere."""
