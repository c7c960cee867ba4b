"""tests/client/test_queries.py on PostgreSQL."""

from client.test_queries import *  # noqa: F403
