"""tests/client/test_several.py over HTTP."""

from client.test_several import *  # noqa: F403
