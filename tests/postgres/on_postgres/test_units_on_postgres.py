"""tests/client/test_units.py on PostgreSQL."""

from client.test_units import *  # noqa: F403
