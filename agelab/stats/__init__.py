"""Medians, shifts between two sides, their intervals and tests, and verdicts (docs/chance.md). Pure functions."""
