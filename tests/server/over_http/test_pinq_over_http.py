"""tests/client/test_pinq.py over HTTP."""

from client.test_pinq import *  # noqa: F403
