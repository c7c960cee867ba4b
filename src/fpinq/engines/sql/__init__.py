"""One lowering for every SQL database: what a plan, an expression and a statistic are in SQL, said once.

A `Dialect` is what a database must say for itself; an engine is a dialect and a way to its data. Read it in
this order.

1. ``expressions``  row expressions to total SQL, by ``numbers``, ``texts`` and ``operators``
2. ``relations``    what a plan is lowered to; ``plans``  plans to it, by ``steps``, ``aggregates``,
                    ``truncation`` and ``blocks``; ``looks``  what may be asked about the data on the way
3. ``statistics``   one SQL text per measurement
4. ``sources``      columns as they are found to columns of ours
"""
