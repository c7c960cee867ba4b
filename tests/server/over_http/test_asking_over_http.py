"""tests/client/test_asking.py over HTTP."""

from client.test_asking import *  # noqa: F403
