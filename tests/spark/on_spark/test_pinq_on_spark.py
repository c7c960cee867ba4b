"""tests/client/test_pinq.py on Spark."""

from client.test_pinq import *  # noqa: F403
