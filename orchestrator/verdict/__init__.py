"""What was compared with what, how it came out, and how surely."""

from orchestrator.verdict.compare import compare

__all__ = ["compare"]
