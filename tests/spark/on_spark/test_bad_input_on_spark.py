"""tests/client/test_bad_input.py on Spark."""

from client.test_bad_input import *  # noqa: F403
