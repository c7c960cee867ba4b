"""Every transformation, whole and inside persons: tests/engines/test_every_transformation.py."""

from engines.test_every_transformation import *  # noqa: F403
