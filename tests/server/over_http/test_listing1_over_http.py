"""tests/client/test_listing1.py over HTTP."""

from client.test_listing1 import *  # noqa: F403
