"""The benchmarks of asv."""
