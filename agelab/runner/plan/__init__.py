"""What a cell is and what each of its boots does, as data."""
