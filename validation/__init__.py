"""The models of agelab against reality: drives, processors, and its verdicts."""
