"""tests/client/test_bad_input.py over HTTP."""

from client.test_bad_input import *  # noqa: F403

test_tables_of_different_engines_cannot_be_mixed = None  # names its own engines
test_a_column_that_no_row_has_is_a_misspelling_not_a_lot_of_nulls = None  # about protect itself
test_a_refused_root_leaves_its_name_free = None  # about protect itself
test_protect_refuses_options_that_make_no_sense = None  # about protect itself
