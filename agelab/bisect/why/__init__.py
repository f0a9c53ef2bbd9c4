"""Find what flips a claim: its cells again, with one factor of the run changed at a time."""
