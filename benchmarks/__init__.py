"""What stackrace costs besides what it measures: each figure a ratio within one run."""
