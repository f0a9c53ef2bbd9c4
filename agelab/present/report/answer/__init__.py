"""The answer at the top of a report."""
