"""Plans to exact integers on Apache Spark."""

from fpinq.engines.spark.engine import Spark

__all__ = ["Spark"]
