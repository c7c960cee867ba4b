"""Plans to exact integers on DuckDB."""

from fpinq.engines.duckdb.engine import DuckDB

__all__ = ["DuckDB"]
