"""tests/client/test_units.py over HTTP."""

from client.test_units import *  # noqa: F403

# Looks at the plans inside the process.
test_inside_a_person_gives_the_same_records_and_one_person_changes_no_more_than_the_factor = None
