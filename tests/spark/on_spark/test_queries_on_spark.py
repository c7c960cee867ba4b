"""tests/client/test_queries.py on Spark."""

from client.test_queries import *  # noqa: F403
