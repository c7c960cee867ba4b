"""tests/client/test_public_facts.py over HTTP."""

from client.test_public_facts import *  # noqa: F403

test_handles_that_are_gone_leave_the_system = None  # looks into the process
test_importing_fpinq_imports_nothing_heavy = None  # about imports
