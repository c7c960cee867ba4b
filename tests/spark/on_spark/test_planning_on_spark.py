"""tests/client/test_planning.py on Spark."""

from client.test_planning import *  # noqa: F403
