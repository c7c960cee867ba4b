"""tests/client/test_results.py over HTTP."""

from client.test_results import *  # noqa: F403
