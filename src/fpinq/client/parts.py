"""Parts: the keys a table is partitioned by, and the mapping that `partition` gives."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from fpinq.client.algebra import derive
from fpinq.client.facts import Bound, Facts, Made, held
from fpinq.client.rows import Cell, Symbolic, constant, plain
from fpinq.client.spelling import spell
from fpinq.client.subjects import Subject
from fpinq.client.systems import fresh_variable
from fpinq.model import actions
from fpinq.model.errors import BadExpression, BadPartition
from fpinq.model.expressions import Literal, Value
from fpinq.model.transformations import Partitioning, PartOf, check_partitioning

if TYPE_CHECKING:
    from fpinq.client.table import Table


MAX_KEYS = 1_000_000


class UnknownPart(BadPartition, KeyError):
    """A key that no part has."""

    __str__ = Exception.__str__  # a KeyError would show its message in quotes


class Parts(Mapping[Any, "Table"]):
    """The parts of a table by key, in the order of the keys. Records with other keys are in no part."""

    def __init__(self, key: str, tables: "dict[Any, Table]") -> None:
        self._key = key
        self._tables = tables

    def __getitem__(self, key: Any) -> "Table":
        try:
            return self._tables[key]
        except (KeyError, TypeError):
            known = ", ".join(repr(k) for k in list(self._tables)[:20])
            raise UnknownPart(f"no part has this key; the keys are {known}") from None

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._tables
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return f"<{len(self)} parts by {self._key}: {', '.join(repr(k) for k in list(self)[:20])}>"


def partitioning(
    subject: Subject, by: object, keys: Iterable[object] | None
) -> tuple[Partitioning, list[Any]]:
    """What `by` and `keys` mean on a table, and the keys as the program knows them."""
    cell = subject.cell(by, "partition")
    if keys is None:
        keys = subject.known(cell).keys
    if keys is None:
        raise BadPartition("partition needs keys=[…]: which parts there are must not depend on the data")
    if isinstance(keys, str | Symbolic) or not isinstance(keys, Iterable):
        raise BadPartition("keys must be a list, such as keys=[0, 1]")
    labels = [plain(key) for key in islice(keys, MAX_KEYS + 1)]
    if len(labels) > MAX_KEYS:
        raise BadPartition(f"at most {MAX_KEYS} parts in one partition")
    found = Partitioning(cell.tree, tuple(_typed(label, cell) for label in labels))
    check_partitioning(found, subject.schema)
    return found, labels


def partition(table: Facts, by: object, keys: Iterable[object] | None) -> tuple[str, dict[Any, Facts]]:
    """The parts of a table by key, in the order given, and what it is partitioned by, in words."""
    found, labels = partitioning(table.subject, by, keys)
    shown = spell(found.key)
    of = _unbound_parts if table.system is None else _bound_parts
    return shown, dict(zip(labels, of(table, found, [f"part {shown} = {k!r}" for k in labels]), strict=True))


def _unbound_parts(table: Facts, by: Partitioning, labels: Sequence[str]) -> list[Facts]:
    """The parts of a public table that is in no system yet: each is a transformation of its own."""
    return [
        derive(PartOf(by, i), table, label=label, columns=table.columns) for i, label in enumerate(labels)
    ]


def _bound_parts(table: Facts, by: Partitioning, labels: Sequence[str]) -> list[Facts]:
    """The parts of a table in a system: siblings, of which the most asked is charged."""
    assert isinstance(table.binding, Bound)
    system, variable = table.binding.system, table.binding.variable
    targets = tuple(fresh_variable() for _ in labels)
    table.act(actions.Partition(targets, variable, by))
    return [
        replace(table, made=Made(label, (table,), (1,)), binding=held(system, target), within=None)
        for label, target in zip(labels, targets, strict=True)
    ]


def _typed(key: object, cell: Cell) -> Value:
    """A key as a value of the type that is partitioned by."""
    try:
        tree = constant(key, cell.type).tree
    except BadExpression:
        tree = None
    if isinstance(tree, Literal) and tree.type is cell.type:
        return tree.value
    raise BadPartition(
        f"{spell(cell.tree)} is {cell.type.value}: all keys must be too, not {type(key).__name__}"
    )
