"""What the time of a cell is made of, and what its processes show."""

from orchestrator.quantities.table import of

__all__ = ["of"]
