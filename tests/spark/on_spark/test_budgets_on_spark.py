"""tests/client/test_budgets.py on Spark."""

from client.test_budgets import *  # noqa: F403
