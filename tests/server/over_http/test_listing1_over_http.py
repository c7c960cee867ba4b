"""tests/client/test_listing1.py over HTTP."""

from client.test_listing1 import *  # noqa: F403

test_frames_of_every_kind_are_tables = None  # the same data in four kinds of frame: a server refuses that
