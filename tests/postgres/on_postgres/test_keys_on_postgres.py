"""tests/client/test_keys.py on PostgreSQL."""

from client.test_keys import *  # noqa: F403
