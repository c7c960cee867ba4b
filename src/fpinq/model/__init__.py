"""The paper, executable: pure, standard library only. Read it in this order.

0. ``errors``         what can go wrong, and what it costs; ``frozen``  dataclasses, made when needed
   ``visible``        text that somebody looks at
1. ``epsilon``        exact ε and budgets
   ``enclosure``      rigorous bounds on e^−r and ln x in integer arithmetic
   ``conversion``     from ρ to (ε, δ) and back, each rounded to its safe side
   ``notions``        an ε or a ρ: what is promised, and what is asked at
2. ``accounts``       sources, sensitivity vectors, accounts and the general charge
   ``books``          the same charge for roots of every notion, each in its own book
3. ``expressions``    the closed row-expression language: syntax and types
4. ``operators``      its operators, each with its type and its value
5. ``keys``           what the parts of a partition are told by; ``domains``  keys that are not listed
   ``partitions``     which part a record is in
   ``aggregates``     of a group's members; ``told``  what follows from keys
   ``transformations``  F with its stability; ``plans``  terms F(t₁…tₙ); ``nesting``  what is in them
6. ``clamps``         how a column becomes exact integers
   ``kinds``          what everybody must know of a query: its statistic, its sensitivity, its mechanism
   ``queries``        primitive queries: those that get noise, and the closed set
   ``choices``        those that choose by scores; ``crossing``  moments of several columns
   ``costs``          what an engine takes for a row; ``work``  what a measurement can cost at the most
7. ``environments``   what table variables stand for
   ``actions``        what a client program can do; ``closed``  and nothing else
8. ``semantics``      configurations and `step`: one function per rule
9. ``traces``         what an observer sees, with exact probabilities
10. ``events``        all that is ever written down
    ``sessions``      programs under one set of budgets: the fold of events, and where a session steps
    ``units``         what sessions see of each other's spending; ``maps``  that never change
11. ``notation``      all of it as the paper writes it
"""
