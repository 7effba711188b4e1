"""The only door to Docker."""

from orchestrator.containers.connection import connect
from orchestrator.containers.engine import DockerEngine

__all__ = ["DockerEngine", "connect"]
