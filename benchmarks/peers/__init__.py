"""The same comparison with asv and pyperf: their own files, and the versions that they are."""
