"""Carrying a run out: boots, cells, forks, maps, status."""
