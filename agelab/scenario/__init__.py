"""Read scenario files and the data files they name into frozen types."""
