"""Medians, their intervals, the floor under which a difference is none (docs/floor.md), and when a step of a search
is good or bad (docs/bisect-rules.md). Pure functions.
"""
