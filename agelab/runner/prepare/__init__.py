"""What a run needs before its first guest starts, found in the store or made."""
