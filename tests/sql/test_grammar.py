"""What is named is understood: the grammar, the translations and the aggregates are of the same kinds."""

import sys
from typing import Any

import pytest
from sqlglot import exp

import fpinq as fp
from fpinq.sql import relations  # registers all translations
from fpinq.sql.aggregates import AGGREGATES, AROUND
from fpinq.sql.expressions import TRANSLATIONS
from fpinq.sql.grammar import NODES, REASONS, function_names

# Statements, clauses and parts of other nodes: read where they stand.
STRUCTURE = {
    exp.Select, exp.Union, exp.Intersect, exp.Except, exp.With, exp.CTE, exp.From, exp.Table, exp.TableAlias,
    exp.Subquery, exp.Values, exp.Tuple, exp.Join, exp.Where, exp.Group, exp.Rollup, exp.Cube,
    exp.GroupingSets, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Alias,
    exp.Star, exp.Identifier, exp.Var, exp.DataType, exp.DataTypeParam, exp.Exists, exp.Grouping,
}  # fmt: skip


def test_every_kind_of_node_is_translated_or_stands_somewhere() -> None:
    assert relations
    assert set(NODES) == STRUCTURE | set(TRANSLATIONS) | set(AGGREGATES) | set(AROUND)
    assert not set(REASONS) & set(NODES)


def test_functions_are_called_as_in_sql() -> None:
    assert {"AVG", "CLAMP", "COALESCE", "MEDIAN", "SUBSTRING"} <= set(function_names())


def test_without_the_parser_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    people: Any = fp.protect([{"a": 1}], budget=1, engine="reference")
    with pytest.raises(fp.ProgramError, match="pip install 'sqlglot"):
        people.sql("SELECT COUNT(*) FROM people", epsilon=1)


def test_the_function_is_there_after_the_folder_is_imported() -> None:
    from fpinq.sql.front import asked

    assert asked
    assert callable(fp.sql)
