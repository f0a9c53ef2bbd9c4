"""Frozen types for what users, tools and guests hand us. Nothing here does any work."""
