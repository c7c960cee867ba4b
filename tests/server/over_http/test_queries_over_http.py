"""tests/client/test_queries.py over HTTP."""

from client.test_queries import *  # noqa: F403
