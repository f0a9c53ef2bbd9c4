"""Follow a scenario's numbers over commits or packages, night by night, and find what changed them unasked."""
