"""Text, as `engines.text` defines it, into a table of ours: read once, when it is protected.

Python reads the bytes and cuts them at newlines; DuckDB is given text in memory,
never a file to make sense of. Fields and cells are SQL, over all lines at once:
a line without a quote is split at its delimiters, one with quotes by the
definition's own pattern, and cells are the lowered conversions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from fpinq.engines import text
from fpinq.engines.duckdb.database import Database
from fpinq.engines.duckdb.dialect import SQL, SQL_TYPES
from fpinq.engines.files import Files
from fpinq.engines.rows import check_some_fit
from fpinq.engines.sql.expressions import Parameters
from fpinq.engines.sql.sources import of_fields, within
from fpinq.engines.text import Dialect
from fpinq.model.errors import BadData
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.operators import MAX_STRING

# How many blocks of lines DuckDB is given at a time, and on how many records a type is tried first.
_BLOCKS = 64
_SAMPLE = 2_048


def store(
    database: Database,
    relation: str,
    files: Files,
    schema: Mapping[str, Type] | None,
    dialect: Dialect | None,
    lengths: Mapping[str, int] | None = None,
) -> Schema:
    """A table c0, c1, … of the records of files; its schema, read off the fields if none is stated."""
    stated = dialect or Dialect()
    names = text.columns_of({path: text.first_line(path) for path in files.paths}, schema, stated)
    wanted = list(schema) if schema is not None else text.named(names)
    fields = f"{relation}_fields"
    listed = ", ".join(f"f{i} VARCHAR" for i in range(len(wanted)))
    database.connection.execute(f"CREATE TABLE {fields} ({listed})")
    try:
        for path in files.paths:
            _add_fields(database, fields, path, names[path], wanted, stated.of(path))
        lacking = [
            path
            for path in files.paths
            if text.lacks_records(path, len(names[path]), stated, partial(text.opened, path))
        ]
        text.check_lacking(lacking, _totals(database, fields, ["count(*)"]) != [0], names, stated)
        types = schema or dict(zip(wanted, _types(database, fields, len(wanted), stated.dates), strict=True))
        _add_cells(database, relation, fields, types, stated.dates, lengths or {})
        if not files.hold():
            raise BadData("a file was changed while it was read: protect it again")
    except BaseException:
        database.connection.execute(f"DROP TABLE IF EXISTS {relation}")
        raise
    finally:
        database.connection.execute(f"DROP TABLE {fields}")
    return Schema.of(types)


# ── lines ────────────────────────────────────────────────────────────────────────────


def _add_fields(
    database: Database, fields: str, path: str, names: Sequence[str], wanted: Sequence[str], dialect: Dialect
) -> None:
    """The wanted fields of a file's records, as text."""
    import numpy as np  # slow to import, and parquet does without

    lines, counted = f"{fields}_lines", 0
    at = text.places(names, wanted, path)
    database.connection.execute(f"CREATE TABLE {lines} (line VARCHAR)")
    try:
        with text.opened(path) as file:
            for blocks in _batches(text.blocks(file), dialect.header):
                counted += sum(block.count("\n") + 1 for block in blocks)
                with database.incoming({"x": np.array(blocks, dtype=object)}):
                    split = "SELECT unnest(string_split(x, chr(10))) FROM incoming"
                    database.connection.execute(f"INSERT INTO {lines} {split}")
        if database.connection.execute(f"SELECT count(*) FROM {lines}").fetchall() != [(counted,)]:
            raise BadData(f"{path}: the engine does not have all of its lines")
        select, parameters = _fields(lines, len(names), at, dialect)
        database.connection.execute(f"INSERT INTO {fields} {select}", parameters)
    finally:
        database.connection.execute(f"DROP TABLE {lines}")


def _batches(blocks: Iterator[str], header: bool) -> Iterator[list[str]]:
    """Blocks of lines, without the header and without the last newline of each."""
    if header:
        first = next(blocks).partition("\n")[2]
        blocks = (block for part in ([first] if first else [], blocks) for block in part)
    while batch := [block[:-1] for block in islice(blocks, _BLOCKS)]:
        yield batch


def _fields(lines: str, width: int, at: Sequence[int], dialect: Dialect) -> tuple[str, dict[str, str]]:
    """SELECT of the fields at some places, of the lines that have `width` of them."""
    bound = Parameters(SQL)
    delimiter, q = dialect.delimiter or ",", dialect.quote
    split, field = f"string_split(line, {bound.bind(delimiter)})", "nullif({0}, '')"
    if q:
        one, then = text.pattern(dialect), re.escape(delimiter)
        fits = f"regexp_full_match(line, {bound.bind(f'(?:{one})(?:{then}(?:{one}))*')})"
        each = f"regexp_extract_all(line || {bound.bind(delimiter)}, {bound.bind(f'({one}){then}')}, 1)"
        quoted = f"contains(line, {bound.bind(q)})"
        split = f"CASE WHEN {quoted} THEN CASE WHEN {fits} THEN {each} END ELSE {split} END"
        inside = f"replace(substring({{0}}, 2, length({{0}}) - 2), {bound.bind(q + q)}, {bound.bind(q)})"
        field = f"CASE WHEN starts_with({{0}}, {bound.bind(q)}) THEN {inside} ELSE {field} END"
    listed = ", ".join(field.format(f"found[{place + 1}]") for place in at)
    some = f"(SELECT {split} AS found FROM {lines} WHERE line <> '')"
    return f"SELECT {listed} FROM {some} WHERE len(found) = {width}", bound.given()


# ── cells ────────────────────────────────────────────────────────────────────────────


def _add_cells(
    database: Database,
    relation: str,
    fields: str,
    types: Mapping[str, Type],
    dates: str,
    lengths: Mapping[str, int],
) -> None:
    """The table of the cells; BadData if no field of a column is of its type."""
    bindings = of_fields(len(types), Parameters(SQL))
    outputs = []
    for i, (name, type_) in enumerate(types.items()):
        code = bindings.output(text.cell(Column(f"f{i}"), type_, dates))
        if type_ is Type.STRING:
            code = bindings.code(within(code.sql, lengths.get(name, MAX_STRING), SQL), type_, code, times=3)
        outputs.append((f"c{i}", code))
    columns = ", ".join(f"c{i} {SQL_TYPES[type_]}" for i, type_ in enumerate(types.values()))
    database.connection.execute(f"CREATE TABLE {relation} ({columns})")
    insert = f"INSERT INTO {relation} {bindings.select(fields, outputs)}"
    database.connection.execute(insert, bindings.parameters.of(insert))
    present = _totals(database, fields, [f"count(nullif(f{i}, ''))" for i in range(len(types))])
    fitting = _totals(database, relation, [f"count(c{i})" for i in range(len(types))])
    empty = [i for i, some in enumerate(present) if some and not fitting[i]]
    misfits = _misfits(database, fields, list(types.values()), dates) if empty else {}
    for i, (name, type_) in enumerate(types.items()):
        check_some_fit(name, type_, i in empty, misfits.get(i) != present[i])


def _types(database: Database, fields: str, width: int, dates: str) -> list[Type]:
    """The narrowest type of each column, as `text.narrowest` says. A sample leaves few to be tried on all."""
    present = _totals(database, fields, [f"count(nullif(f{i}, ''))" for i in range(width)])
    types = [text.TYPES[0] if some else Type.STRING for some in present]
    for source in (f"(SELECT * FROM {fields} LIMIT {_SAMPLE})", fields):
        while any((wrong := _misfits(database, source, types, dates)).values()):
            types = [
                text.TYPES[text.TYPES.index(type_) + 1] if wrong.get(i) else type_
                for i, type_ in enumerate(types)
            ]
    return types


def _misfits(database: Database, source: str, types: Sequence[Type], dates: str) -> dict[int, int]:
    """How many fields of each column are not of the type that is tried. All are texts."""
    tried = [i for i, type_ in enumerate(types) if type_ is not Type.STRING]
    if not tried:
        return {}
    bindings = of_fields(len(types), Parameters(SQL))
    outputs = [(f"f{i}", bindings.columns[f"f{i}"]) for i in tried]
    outputs += [(f"c{i}", bindings.output(text.fits(Column(f"f{i}"), types[i], dates))) for i in tried]
    wrong = [f"count(CASE WHEN f{i} <> '' AND NOT c{i} THEN 1 END)" for i in tried]
    found = _totals(database, f"({bindings.select(source, outputs)})", wrong, bindings.parameters.given())
    return dict(zip(tried, found, strict=True))


def _totals(database: Database, source: str, wanted: Sequence[str], bound: Any = None) -> list[int]:
    (row,) = database.connection.execute(f"SELECT {', '.join(wanted)} FROM {source}", bound or {}).fetchall()
    return list(row)
