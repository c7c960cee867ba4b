"""tests/client/test_listing1.py over HTTP."""

from client.test_listing1 import *  # noqa: F403

test_a_csv_file_is_a_table = None  # without a schema: a server does not guess one
test_frames_of_every_kind_are_tables = None  # the same data in four kinds of frame: a server refuses that
