"""A statement, the tables that it may name, and an ε: what fp.sql, table.sql and catalog.sql ask."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from fpinq.client.amounts import plain_amount
from fpinq.client.table import Table
from fpinq.model.epsilon import delta as exact_delta
from fpinq.model.errors import BadEpsilon, ProgramError
from fpinq.sql.asking import ask
from fpinq.sql.explaining import Explanation, explain
from fpinq.sql.parsing import parse
from fpinq.sql.programs import Program, program
from fpinq.sql.results import Line, Result
from fpinq.sql.scopes import Catalog, alike, relation_of


def asked(
    text: object, epsilon: object, tables: Mapping[str, Any], own: Table | None = None, delta: object = None
) -> Line | Result | Explanation:
    """The answers of a SELECT, or the explanation of an EXPLAIN; own is what any other name stands for.

    With a δ, keys of GROUP BY that are not public are found.
    """
    found = planned(text, tables, own, delta)
    if found.parsed.explained:
        return explain(found, epsilon)
    if epsilon is None:
        raise BadEpsilon("say how much of the budget to use: epsilon=0.1; EXPLAIN SELECT … is free")
    return ask(found, epsilon)


def planned(
    text: object, tables: Mapping[str, Any], own: Table | None = None, delta: object = None
) -> Program:
    """What a statement asks, of which tables: nothing is charged yet."""
    parsed = parse(text)
    if delta is not None:
        exact = exact_delta(plain_amount(delta))
        parsed = replace(parsed, hints=replace(parsed.hints, delta=exact))
    return program(parsed, catalog_of(tables, own, parsed.tables))


def catalog_of(tables: Mapping[str, Any], own: Table | None, named: Collection[str]) -> Catalog:
    """Tables by name; a mapping of tables about the same people is known by its tables' names too.

    Only what a statement names is looked up: on a server, a table is made when it is.
    """
    found: dict[str, Table] = {}
    groups = [name for name in tables if any(alike(name, each.partition(".")[0]) for each in named)]
    for name in groups:
        found |= _tables_of(name, tables[name])
    if own is None and not all(any(alike(each, known) for known in found) for each in named):
        for name in tables:
            if name not in groups:
                found = _tables_of(name, tables[name]) | found
    relations = {name: relation_of(table, name) for name, table in found.items()}
    return Catalog(relations, None if own is None else relation_of(own, ""))


def _tables_of(name: str, table: Any) -> dict[str, Table]:
    if isinstance(table, Table):
        return {name: table}
    if isinstance(table, Mapping):
        return dict(table) | {f"{name}.{each}": one for each, one in table.items()}
    raise ProgramError(
        f"{name} is no table but {type(table).__name__}: protect it, fp.protect(…), or fp.public(…)"
    )
