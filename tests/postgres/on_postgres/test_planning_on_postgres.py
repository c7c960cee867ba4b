"""tests/client/test_planning.py on PostgreSQL."""

from client.test_planning import *  # noqa: F403
