"""Plans to exact integers in PostgreSQL, where the data lives."""

from fpinq.engines.postgres.engine import Postgres

__all__ = ["Postgres"]
