"""``make tables``: the numbers, tables and pictures of the pages, made of runs (docs/design.md)."""
