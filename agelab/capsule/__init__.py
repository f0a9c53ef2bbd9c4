"""Capsules: a run packed in one file, which can be replayed anywhere."""
