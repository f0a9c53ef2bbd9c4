"""Text, tables and progress for a terminal."""
