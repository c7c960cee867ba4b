"""SQL to the same actions: a statement is parsed, named and translated to calls of the client's tables.

`parsing` reads the text and refuses what the front end does not name, `grammar` is what it names,
`scopes` finds columns, `expressions` and `functions` translate what is computed of a row,
`relations` what FROM says, `aggregates` and `keys` what is asked, `statements` asks it, and `results`
are the rows of the SELECT list. sqlglot is the parser and nothing else: no text of its making is run.
"""
