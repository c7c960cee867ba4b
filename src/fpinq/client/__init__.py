"""The LINQ-like table: lambdas to actions, noisy integers to answers. Read it in this order.

1. ``rows``       symbolic rows; ``shorthand`` is `_`; ``tracing`` calls a lambda, once
2. ``protect``    how tables come into being; ``systems`` where they live
3. ``handle``     what a table knows of itself; ``asking`` its queries; ``table`` its transformations
   ``groups``     group_by and group_join; ``joins``, ``parts``
4. ``queries``    what to ask, and how integers become an answer; ``bounds`` their grid
   ``answers``    values that know their error; ``uncertainty`` how large it is
5. ``budgets``    sub-budgets; ``derivation`` and ``spelling`` show how a table was made
"""
