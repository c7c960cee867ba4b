"""tests/client/test_answers.py over HTTP."""

from client.test_answers import *  # noqa: F403
