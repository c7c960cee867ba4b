"""Featherweight PINQ for Python: private queries over sensitive tables."""

__version__ = "0.1.0"
