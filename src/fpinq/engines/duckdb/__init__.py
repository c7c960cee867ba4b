"""Plans to exact integers on DuckDB. Read it in this order.

1. ``engine``       roots and measurements; ``database``  one locked DuckDB; ``trial``  whether it is fit;
                    ``sources``  what data may be, ``parquet`` and ``lines``  files of it
2. ``engines.sql``  plans, expressions and statistics to SQL; ``dialect``  DuckDB's own words in it
"""

from fpinq.engines.duckdb.engine import DuckDB

__all__ = ["DuckDB"]
