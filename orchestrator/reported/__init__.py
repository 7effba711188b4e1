"""Whether what somebody reported in public is so here: claims against recorded runs."""

from __future__ import annotations

from orchestrator.reported.check import Checked, check
from orchestrator.reported.section import section

__all__ = ["Checked", "check", "section"]
