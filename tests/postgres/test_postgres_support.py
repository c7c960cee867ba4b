"""Keys that nobody listed: tests/engines/test_support.py."""

from engines.test_support import *  # noqa: F403
