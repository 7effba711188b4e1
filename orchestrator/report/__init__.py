"""Says what the verdict found, in words and tables, for a terminal and in Markdown."""
