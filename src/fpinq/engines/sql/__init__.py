"""One lowering for every SQL database: what a plan, an expression and a statistic are in SQL, said once.

A `Dialect` is what a database must say for itself; an engine is a dialect and a way to its data.
"""
