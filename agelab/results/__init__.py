"""Results: the append-only run directory, the digest, and how they are shown."""
