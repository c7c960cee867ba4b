"""tests/client/test_keys.py on Spark."""

from client.test_keys import *  # noqa: F403
