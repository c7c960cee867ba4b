"""Keys: what `by` and `keys` mean on a table, and how a part is looked up by what its key is."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from itertools import islice
from math import prod
from types import NoneType
from typing import Any
from weakref import WeakKeyDictionary

from fpinq.client.facts import Facts, Unbound
from fpinq.client.rows import BOOL, INT64, Cell, Row, Symbolic, constant, plain
from fpinq.client.spelling import spell
from fpinq.client.subjects import Subject
from fpinq.client.tracing import row, trace
from fpinq.engines import reference
from fpinq.model.errors import BadExpression, BadPartition, suggest
from fpinq.model.expressions import CLASS_OF, Column, Literal, Value, classes_of
from fpinq.model.frozen import dataclass
from fpinq.model.keys import Domain, Product, counted
from fpinq.model.plans import Plan, Term
from fpinq.model.transformations import Partitioning, check_partitioning
from fpinq.model.visible import visible

MAX_KEYS = 1_000_000
# So few keys are written one by one, even if they are a range.
FEW = 16

_PLAIN = {id(kind) for kind in (NoneType, bool, int, float, str, date, datetime)}

# What `discovery` knows.
_FOUND = {"discover", "integers", "dates", "strings", "truths", "domains"}

# What is called so for want of a name.
_UNNAMED = re.compile(r"key[0-9]*", re.ASCII)

# What a key is made of, by name: a column's own, or the program's.
Cells = Mapping[str, Cell]


class UnknownPart(BadPartition, KeyError):
    """A key that no part has."""


@dataclass(frozen=True)
class Keyed:
    """A partitioning, what the columns of its key are called, and the keys as the program knows them."""

    by: Partitioning
    columns: tuple[str, ...]
    labels: Sequence[Any]
    note: str = ""  # how the keys were found, if they were

    @property
    def shown(self) -> str:
        """What the key is, in words."""
        return ", ".join(self._each)

    @cached_property
    def _each(self) -> tuple[str, ...]:
        """The names that the program gave, or else the expressions."""
        named = zip(self.columns, self.by.expressions, strict=True)
        return tuple(spell(key) if _UNNAMED.fullmatch(name) else visible(name) for name, key in named)

    def part(self, label: Any) -> str:
        """What the part of a key is, in words."""
        if not isinstance(self.by.key, tuple):
            return f"part {self._each[0]} = {label!r}{self.note}"
        each = zip(self._each, label, strict=True)
        return f"part {', '.join(f'{name} = {value!r}' for name, value in each)}{self.note}"


def are_found(keys: object) -> bool:
    """Whether keys are not listed but found by a query: fp.discover(…), or a domain of them."""
    return getattr(type(keys), "op", None) in _FOUND and not isinstance(keys, Iterable)


def keyed(subject: Subject, by: object, keys: object) -> Keyed:
    """What `by` and `keys` mean on a table."""
    cells = cells_of_key(subject, by, "partition")
    columns, trees = tuple(cells), tuple(cell.tree for cell in cells.values())
    found, labels = (_of_one if len(cells) == 1 else _of_several)(subject, cells, _listed(keys, columns))
    partitioning = Partitioning(trees[0] if len(trees) == 1 else trees, found)
    check_partitioning(partitioning, subject.schema)
    return Keyed(partitioning, columns, labels)


def looked_up(key: Any, columns: Sequence[str]) -> Any:
    """A key as parts and answers know it: of a dict, its values in the order of the columns."""
    if not isinstance(key, Mapping):
        return key
    _check_names(key, columns, UnknownPart)
    values = tuple(plain(key[name]) for name in columns)
    return values if len(values) > 1 else values[0]


def is_known(key: object, columns: Sequence[str], keys: Collection[Any]) -> bool:
    """Whether parts or answers have a key."""
    try:
        return looked_up(key, columns) in keys
    except (TypeError, UnknownPart):  # it cannot be a key, or is one of other columns
        return False


def known_key(key: Any, columns: Sequence[str], keys: Collection[Any], what: str) -> Any:
    """A key as parts and answers know it, if it is one of theirs."""
    asked = looked_up(key, columns)
    if is_known(asked, columns, keys):
        return asked
    raise UnknownPart(f"no {what} has this key; the keys are {', '.join(map(repr, islice(keys, FEW)))}")


# ── what a key is made of ────────────────────────────────────────────────────────────


def cells_of_key(subject: Subject, by: object, what: str) -> Cells:
    """The expressions of a key by name: `by` is a column, a function, or a list or dict of such."""
    if isinstance(by, dict) and by and all(isinstance(cell, Cell) for cell in by.values()):
        return by  # traced already
    if by is None or isinstance(by, Cell):
        cell = subject.cell(by, what)
        return {_name(cell): cell}
    traced = trace(list(by) if isinstance(by, tuple) else by, what, row(subject.schema))
    given = traced.result
    if isinstance(given, Mapping):
        if not given or not all(type(name) is str and name for name in given):
            raise BadPartition(f'{what} needs columns with names: {{"edu": x.edu, "rich": x.rich}}')
        return {name: traced.cell_of(cell) for name, cell in given.items()}
    if not isinstance(given, list | tuple) or isinstance(given, Row):
        cell = traced.cell()
        return {_name(cell): cell}
    cells = [traced.cell_of(cell) for cell in given]
    names = [_name(cell, f"key{i}") for i, cell in enumerate(cells, 1)]
    if not names or len(set(names)) < len(names):
        raise BadPartition(f'{what} needs one or more columns that differ, such as ["edu", "rich"]')
    return dict(zip(names, cells, strict=True))


def _name(cell: Cell, otherwise: str = "key") -> str:
    """What a key is called: the column that it is."""
    return cell.tree.name if isinstance(cell.tree, Column) else otherwise


# ── which keys there are ─────────────────────────────────────────────────────────────


def _listed(keys: object, columns: Sequence[str]) -> Any:
    """The keys that were given, None if none were; those of a public table are its different rows."""
    facts = getattr(keys, "facts", None)
    if isinstance(facts, Facts):
        return _different(facts, columns)
    if isinstance(keys, Mapping) and len(columns) == 1 and list(keys) == list(columns):
        return _listed(keys[columns[0]], columns)  # by column, as for several
    if keys is not None and (isinstance(keys, str | Symbolic) or not isinstance(keys, Iterable)):
        few = "0, 1" if len(columns) == 1 else "('a', 0), ('b', 1)"
        raise BadPartition(f"keys must be a list, such as keys=[{few}]")
    return keys


def _of_one(subject: Subject, cells: Cells, keys: Any) -> tuple[Domain, Sequence[Any]]:
    ((name, cell),) = cells.items()
    given = _known(subject, cell) if keys is None else keys
    if given is None:
        raise _none_given([name])
    labels = _labels(given)
    if labels and all(isinstance(label, Mapping) for label in labels):
        labels = [looked_up(label, [name]) for label in labels]
    if len(labels) > MAX_KEYS:
        raise BadPartition(f"at most {MAX_KEYS:,} parts in one partition")
    return _typed_keys(labels, cell), labels


def _of_several(subject: Subject, cells: Cells, keys: Any) -> tuple[Any, Sequence[Any]]:
    """Keys of several columns: each with each, or as they are listed."""
    if keys is None or isinstance(keys, Mapping):
        return _product(subject, cells, keys or {})
    labels = [_tuple(key, tuple(cells)) for key in _labels(keys)]
    if len(labels) > MAX_KEYS:
        raise BadPartition(f"at most {MAX_KEYS:,} parts in one partition")
    if not labels:
        raise _none_given(list(cells))
    columns = zip(*labels, strict=True)
    typed = [_typed_values(values, cell) for values, cell in zip(columns, cells.values(), strict=True)]
    return tuple(zip(*typed, strict=True)), labels


def _product(subject: Subject, cells: Cells, keys: Mapping[Any, Any]) -> tuple[Product, Product]:
    """Every combination of the keys of each column: those given for it, or those known of it."""
    _check_names(keys, tuple(cells), BadPartition, some=True)
    each = {name: keys[name] if name in keys else _known(subject, cell) for name, cell in cells.items()}
    if missing := [name for name, domain in each.items() if domain is None]:
        raise _none_given(missing)
    labels = [_labels(_listed(domain, (name,))) for name, domain in each.items()]
    numbers = list(map(_number, each.values(), labels))
    if prod(numbers) > MAX_KEYS:
        raise BadPartition(
            f"{' × '.join(cells)} has {counted(numbers)} keys, and a partition at most {MAX_KEYS:,}: "
            "list those that you need, keys=[(…, …), …], or give fewer for a column, keys={…: […]}"
        )
    domains = [_typed_keys(some, cell) for some, cell in zip(labels, cells.values(), strict=True)]
    return Product(tuple(domains)), Product(tuple(map(_domain, labels)))


def _number(keys: Any, labels: Sequence[Any]) -> int:
    """How many keys there are; of a range, more perhaps than `len` may count."""
    return -(-(keys.stop - keys.start) // keys.step) if type(keys) is range else len(labels)


def _domain(labels: Sequence[Any]) -> Domain:
    return labels if type(labels) is range else tuple(labels)


def _known(subject: Subject, cell: Cell) -> Sequence[Value] | None:
    """The keys that are known of an expression: those of its column; a condition is false or true."""
    keys = subject.known(cell).keys
    return (False, True) if keys is None and cell.type is BOOL else keys


def _none_given(columns: Sequence[str]) -> BadPartition:
    named = ", ".join(columns)
    return BadPartition(
        f"partition needs keys=[…] of {named} (in a shell --keys 0,1): which parts there are must not depend "
        "on the data. "
        f"Or once for all with protect(columns={{{columns[0]!r}: fp.Column(keys=[…])}}). "
        "Keys that nobody listed are found by a query: keys=fp.discover(…), or keys=fp.domain.strings(32); "
        'in a shell --delta or --domain, over HTTP "discover"'
    )


def _tuple(key: object, columns: tuple[str, ...]) -> tuple[Any, ...]:
    """A key of several columns."""
    if isinstance(key, Mapping):
        _check_names(key, columns, BadPartition)
        return tuple(plain(key[name]) for name in columns)
    named = ", ".join(columns)
    if not isinstance(key, tuple | list):
        raise BadPartition(f"a key of {named} is a tuple or a dict, not {type(key).__name__}")
    if len(key) != len(columns):
        raise BadPartition(f"a key of {named} has {len(columns)} values, and one of the keys has {len(key)}")
    return tuple(map(plain, key))


def _check_names(
    given: Mapping[Any, Any], columns: Sequence[str], error: type[BadPartition], some: bool = False
) -> None:
    """An error unless a dict has the names of the columns; or some of them."""
    named = ", ".join(columns)
    for name in given:
        if name not in columns:
            raise error(
                f"{name!r} is not a column of the key, which has {named}{suggest(str(name), columns)}"
            )
    if not some and (missing := [name for name in columns if name not in given]):
        raise error(f"a key has {named}: this one has no {missing[0]}")


def _different(facts: Facts, columns: Sequence[str]) -> list[Any]:
    """The different keys in a public table, in its order."""
    rows = public_rows(facts)
    names = facts.schema.names()
    for name in columns:
        if name not in names:
            raise BadPartition(f"the table of keys has no column {name!r}{suggest(name, names)}")
    places = [names.index(name) for name in columns]
    keys = dict.fromkeys(tuple(record[place] for place in places) for record in rows)
    return list(keys) if len(columns) > 1 else [key for (key,) in keys]


def public_rows(facts: Facts) -> Sequence[tuple[Value, ...]]:
    """All rows of a public table."""
    if not isinstance(facts.binding, Unbound):
        raise BadPartition(
            "keys are a list, or a table of public rows, such as fp.public(rows): they may not depend on data"
        )
    if facts.binding not in _computed:
        _computed[facts.binding] = reference.compute(_plan(facts.binding), {}).rows
    return _computed[facts.binding]


# As long as there is the table.
_computed: WeakKeyDictionary[Unbound, Sequence[tuple[Value, ...]]] = WeakKeyDictionary()


def _plan(unbound: Unbound) -> Plan:
    """How a public table is made."""
    arguments = [_plan(argument) for argument in unbound.arguments if isinstance(argument, Unbound)]
    return Term(unbound.transformation, tuple(arguments))


# ── values ───────────────────────────────────────────────────────────────────────────


def _labels(keys: Iterable[object]) -> Sequence[Any]:
    """The keys as the program knows them: plain values, and no more than one too many."""
    if type(keys) is range:
        return keys[: MAX_KEYS + 1]
    if hasattr(keys, "tolist"):  # an array, of values that are plain then
        keys = keys.tolist()
    listed = list(islice(keys, MAX_KEYS + 1))
    return listed if classes_of(listed) <= _PLAIN else [plain(key) for key in listed]


def _typed_keys(labels: Sequence[Any], cell: Cell) -> Domain:
    """The keys as values of the type that is partitioned by; many integers in a row as a range."""
    if type(labels) is range and labels.step == 1 and cell.type is INT64:
        return range(int(labels.start), int(labels.stop))
    typed = _typed_values(labels, cell)
    if len(typed) > FEW and cell.type is INT64 and None not in typed:
        row = range(typed[0], typed[0] + len(typed))
        if list(row) == list(typed):
            return row
    return tuple(typed)


def _typed_values(labels: Sequence[Any], cell: Cell) -> Sequence[Any]:
    if classes_of(labels) <= {id(NoneType), CLASS_OF[cell.type]}:
        return labels
    return [_typed(label, cell) for label in labels]


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
