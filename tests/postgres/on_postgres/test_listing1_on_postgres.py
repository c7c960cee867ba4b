"""tests/client/test_listing1.py on PostgreSQL."""

from client.test_listing1 import *  # noqa: F403
