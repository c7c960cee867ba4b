"""Settings for every test."""

from hypothesis import settings

# A shared machine may stall for a second; a slow example is not a failure.
settings.register_profile("fpinq", deadline=None)
settings.load_profile("fpinq")
