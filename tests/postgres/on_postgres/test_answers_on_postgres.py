"""tests/client/test_answers.py on PostgreSQL."""

from client.test_answers import *  # noqa: F403
