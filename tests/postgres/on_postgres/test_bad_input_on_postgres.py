"""tests/client/test_bad_input.py on PostgreSQL."""

from client.test_bad_input import *  # noqa: F403
