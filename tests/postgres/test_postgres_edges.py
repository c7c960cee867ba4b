"""Queries at the edges of their bounds, in PostgreSQL."""

from engines.test_edges import *  # noqa: F403
