"""Processes of one block or round, side by side: the numbers that verdict and advice stand on."""
