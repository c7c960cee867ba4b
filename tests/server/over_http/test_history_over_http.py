"""tests/client/test_history.py over HTTP."""

from client.test_history import *  # noqa: F403
