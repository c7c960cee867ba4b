"""tests/client/test_several.py on Spark."""

from client.test_several import *  # noqa: F403
