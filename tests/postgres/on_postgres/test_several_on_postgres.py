"""tests/client/test_several.py on PostgreSQL."""

from client.test_several import *  # noqa: F403
