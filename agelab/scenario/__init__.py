"""Scenario files and the data files beside them, read into frozen types."""
