"""tests/client/test_lambdas.py on Spark."""

from client.test_lambdas import *  # noqa: F403
