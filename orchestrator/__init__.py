"""The host side of stackrace: plans, environments, runs, records, verdicts."""

__version__ = "0.1.0"
