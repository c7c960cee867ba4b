"""The LINQ-like table: lambdas to actions, noisy integers to answers. Read it in this order.

1. ``rows``       symbolic rows; ``shorthand`` is `_`; ``tracing`` calls a lambda, once
2. ``facts``      what is known of a table: one frozen record; ``systems`` where tables live
   ``algebra``    transformations of facts; ``joins``, ``groups``, ``parts``
3. ``queries``    what to ask of a subject, and how integers become an answer; ``bounds`` their grid
   ``answers``    values that know their error; ``uncertainty`` how large it is
   ``asking``     a query of facts: one action
4. ``table``      all of that as methods; ``protect`` and ``remote`` how tables come into being
5. ``budgets``    sub-budgets; ``derivation`` and ``spelling`` show how a table was made
"""
