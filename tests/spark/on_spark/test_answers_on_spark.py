"""tests/client/test_answers.py on Spark."""

from client.test_answers import *  # noqa: F403
