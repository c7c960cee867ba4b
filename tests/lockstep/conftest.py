"""The engines of the conformance suite, in lock step too."""

from engines.conftest import engine

__all__ = ["engine"]
