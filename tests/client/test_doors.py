"""The client has no private doors: a table is a frozen record of public facts, and methods over it."""

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pytest

import fpinq as fp
import fpinq.client
from fpinq.client.facts import Facts
from fpinq.client.rows import Cell

FOLDER = Path(fpinq.client.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def tree(name: str) -> ast.Module:
    return ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def own(definition: ast.AST) -> set[str]:
    """The private names that a class or module defines or sets."""
    defined = {n.name for n in ast.walk(definition) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    return defined | {
        node.attr
        for node in ast.walk(definition)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def doors(module: ast.Module) -> Iterator[str]:
    """Where a module uses a private name of an object whose class it does not define."""
    known = own(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in known:
            yield f"line {node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fpinq"):
            for imported in node.names:
                if is_private(imported.name):
                    yield f"line {node.lineno}: {imported.name}"


@pytest.mark.parametrize("name", MODULES)
def test_no_module_uses_a_private_name_of_another(name: str) -> None:
    assert list(doors(tree(name))) == []


def used_of_self(definition: ast.ClassDef) -> set[str]:
    """The names that the methods of a class use of their own object."""
    return {
        node.attr
        for node in ast.walk(definition)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }


@pytest.mark.parametrize("name", MODULES)
def test_no_class_calls_what_only_its_child_has(name: str) -> None:
    for definition in (node for node in tree(name).body if isinstance(node, ast.ClassDef)):
        parent = getattr(import_module(f"fpinq.client.{name}"), definition.name)
        for child in parent.__subclasses__():
            only_there = {attr for attr in vars(child) if not hasattr(parent, attr)}
            found = used_of_self(definition) & only_there
            assert not found, f"{parent.__name__} uses {found} of {child.__name__}"


def test_only_a_call_of_a_function_makes_rows() -> None:
    """Of a lambda there is one way to a tree: nobody else makes a symbolic row to call it on."""
    makers = {
        name
        for name in MODULES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Row"
    }
    assert makers == {"tracing", "groups"}  # a group's key is a row that its lambda is given


def calls(name: str, function: str) -> bool:
    """Whether a module calls a function by this name, whatever it is imported from."""
    return any(
        isinstance(node, ast.Call) and function == getattr(node.func, "attr", getattr(node.func, "id", None))
        for node in ast.walk(tree(name))
    )


def test_an_epsilon_is_made_exact_where_a_program_says_it_and_nowhere_else() -> None:
    assert {name for name in MODULES if calls(name, "asked_at")} == {"askable", "discovery"}
    assert not [name for name in MODULES if calls(name, "epsilon")]


@pytest.mark.parametrize("number", [Decimal("NaN"), Decimal("sNaN"), Decimal("1E+999999999")])
def test_a_decimal_that_is_no_number_is_refused_as_any_other_bad_number_is(number: Decimal) -> None:
    table = fp.protect([{"age": 1}], budget=1, schema={"age": "int64"}, engine="reference")
    answer = fp.public([{"age": 1}]).noisy_count(1)
    for refused in (
        lambda: table.noisy_quantile(1, number, "age", bounds=(0, 9)),
        lambda: table.noisy_sum(1, "age", bounds=(0, number)),
        lambda: answer.interval(number),
    ):
        with pytest.raises(fp.BadQuery):
            refused()


def test_a_table_and_its_facts_cannot_be_changed() -> None:
    table = fp.protect([{"age": 1}], budget=1, schema={"age": "int64"}, engine="reference")
    with pytest.raises(FrozenInstanceError):
        table.facts = table.facts
    for fact in fields(Facts):
        with pytest.raises(FrozenInstanceError):
            setattr(table.facts, fact.name, None)


def test_a_cells_facts_are_public_and_no_methods_of_the_row_language() -> None:
    with pytest.raises(fp.BadExpression) as refused:
        fp.public([{"age": 1}]).where(lambda x: x.age.nothing_like_it())
    shown = str(refused.value).rpartition("has: ")[2].split(", ")
    assert {"tree", "type", "call"} == set(Cell.__slots__)
    assert "is_in" in shown
    assert not set(Cell.__slots__) & set(shown)
