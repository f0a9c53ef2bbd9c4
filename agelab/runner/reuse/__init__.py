"""Ended cells found again by their keys: in the store's own runs, and in a cache that machines share."""
