"""Builders: what a test needs before it begins, made without a guest where the thing itself is not tested."""
