"""tests/client/test_lambdas.py over HTTP."""

from client.test_lambdas import *  # noqa: F403
