"""Cells and their boots, as data."""
