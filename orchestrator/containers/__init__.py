"""The only door to Docker."""

from orchestrator.containers.connection import connect, elsewhere
from orchestrator.containers.engine import DockerEngine

__all__ = ["DockerEngine", "connect", "elsewhere"]
