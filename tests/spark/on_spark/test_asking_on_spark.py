"""tests/client/test_asking.py on Spark."""

from client.test_asking import *  # noqa: F403
