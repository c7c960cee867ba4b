"""tests/client/test_planning.py over HTTP."""

from client.test_planning import *  # noqa: F403
