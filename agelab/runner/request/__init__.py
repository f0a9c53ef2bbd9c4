"""What is asked: options, checked once and for all, and the cells that follow from them."""
