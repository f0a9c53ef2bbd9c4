"""Guests: their domain XML, the clock they run on, the daemon that runs them, and their lives."""
