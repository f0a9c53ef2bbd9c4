"""Operation histories: what ages a disk, made by an engine or brought as a log or a trace."""
