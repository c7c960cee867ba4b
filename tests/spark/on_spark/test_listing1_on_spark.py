"""tests/client/test_listing1.py on Spark."""

from client.test_listing1 import *  # noqa: F403
