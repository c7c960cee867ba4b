"""SQL to the same actions: a statement is parsed, named and translated to calls of the client's tables.

1. ``parsing`` reads the text and refuses what ``grammar`` does not name; ``scopes`` finds columns
2. ``expressions`` and ``functions``: what is computed of a row; ``bounds`` and ``keys``: what is public of it
3. ``relations``, ``joining`` and ``groups``: FROM, WHERE and sub-queries, as tables
4. ``scalars`` and ``public``: sub-queries that are values
5. ``aggregates`` and ``statements``: what a SELECT asks; ``combining``: several; ``programs``: a statement
6. ``explaining`` says it, ``asking`` asks it
7. ``levels``, ``linear`` and ``results``: what is made of what was released
8. ``front``: a statement, the tables that it may name, and an ε

sqlglot is the parser and nothing else: no text of its making is run.
"""
