"""The host side of stackrace: plans, environments, runs, records, verdicts."""
