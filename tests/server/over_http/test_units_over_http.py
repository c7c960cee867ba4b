"""tests/client/test_units.py over HTTP."""

from client.test_units import *  # noqa: F403
