"""tests/client/test_keys.py over HTTP."""

from client.test_keys import *  # noqa: F403
