"""Medians, their intervals, and the floor under which a difference does not count (docs/floor.md). Pure functions."""
