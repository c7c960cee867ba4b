"""tests/client/test_budgets.py over HTTP."""

from client.test_budgets import *  # noqa: F403

test_two_roots_of_the_same_name_are_told_apart = None  # a server has one data set of a name
test_roots_have_their_own_budgets_and_names = None  # the same data twice: a server refuses that
