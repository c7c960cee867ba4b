"""Engines turn a plan, and a partition of it, into exact integer statistics."""
