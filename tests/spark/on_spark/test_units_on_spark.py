"""tests/client/test_units.py on Spark."""

from client.test_units import *  # noqa: F403
