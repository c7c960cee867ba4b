"""tests/client/test_asking.py on PostgreSQL."""

from client.test_asking import *  # noqa: F403
