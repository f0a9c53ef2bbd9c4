"""Frozen types for data from users, tools and guests."""
