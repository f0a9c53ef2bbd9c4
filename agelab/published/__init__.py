"""What the studies published, and whether a run of ours bears it out. Pure functions; see docs/replication.md."""
