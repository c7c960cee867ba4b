"""The ways in: the command line."""
