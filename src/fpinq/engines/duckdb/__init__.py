"""Plans to exact integers on DuckDB. Read it in this order.

1. ``engine``       roots and measurements; ``database``  one locked DuckDB; ``trial``  whether it is fit;
                    ``sources``  what data may be, ``parquet`` and ``lines``  files of it
2. ``plans``        plans to subqueries, ``relations`` on the way; ``truncation``  which rows of a key stay
3. ``expressions``  row expressions to total SQL
4. ``statistics``   one SQL text per measurement
"""

from fpinq.engines.duckdb.engine import DuckDB

__all__ = ["DuckDB"]
