"""Storage of results: the append-only run directory, checksums, the digest, and flat rows."""
