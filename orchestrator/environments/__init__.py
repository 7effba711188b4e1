"""Isolated environments: found in the cache or made, probed, and ready to run workers."""
