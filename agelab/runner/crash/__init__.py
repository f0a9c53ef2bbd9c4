"""Crash states: each moment at which the power can go, looked at in a guest (docs/design.md, "Crash states")."""
