"""Block requests: what a guest records of them, and traces of other hosts, read and written."""
