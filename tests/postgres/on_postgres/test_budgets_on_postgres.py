"""tests/client/test_budgets.py on PostgreSQL."""

from client.test_budgets import *  # noqa: F403
