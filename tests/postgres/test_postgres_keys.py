"""Keys of several columns: tests/engines/test_keys.py."""

from engines.test_keys import *  # noqa: F403
