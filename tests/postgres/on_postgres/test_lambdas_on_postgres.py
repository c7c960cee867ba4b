"""tests/client/test_lambdas.py on PostgreSQL."""

from client.test_lambdas import *  # noqa: F403
