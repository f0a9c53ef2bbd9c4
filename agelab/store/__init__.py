"""Content-addressed artefacts: built once, verified, copied between machines, pruned."""
