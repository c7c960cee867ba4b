"""tests/client/test_pinq.py on PostgreSQL."""

from client.test_pinq import *  # noqa: F403
