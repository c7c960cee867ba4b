"""tests/client/test_asking.py over HTTP."""

from client.test_asking import *  # noqa: F403

test_an_average_without_records_is_the_middle = None  # the same data twice: a server refuses that
