"""Medians, their intervals, and the floor under which a difference is none. Pure functions; see docs/floor.md."""
