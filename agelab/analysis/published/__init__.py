"""Published studies, and verdicts on their claims from runs of ours. Pure functions; see docs/replication.md."""
