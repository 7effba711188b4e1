"""What the values of one process show: pure functions, each over many processes at once."""
