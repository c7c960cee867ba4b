"""What a statement asks in all: its scalar sub-queries first, then its SELECTs, of which rows are made."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sqlglot import exp

from fpinq.model.errors import BadSQL, suggest
from fpinq.model.frozen import dataclass
from fpinq.sql.combining import Whole, selects, whole
from fpinq.sql.finding import KEYS
from fpinq.sql.parsing import Parsed
from fpinq.sql.relations import Reader
from fpinq.sql.scalars import Scalar, Scalars
from fpinq.sql.scopes import Catalog, alike
from fpinq.sql.statements import Plan


@dataclass(frozen=True)
class Program:
    """A statement over tables: all that is public of it, and nothing is charged."""

    parsed: Parsed
    catalog: Catalog
    scalars: tuple[Scalar, ...]
    whole: Whole
    # The sub-queries whose values are in expressions of rows, and the values that are known.
    in_rows: frozenset[str]
    values: Mapping[str, Any]

    @property
    def plans(self) -> list[Plan]:
        """Whatever is asked, in this order."""
        return [*(scalar.plan for scalar in self.scalars), *selects(self.whole)]

    @property
    def weight(self) -> Fraction:
        """What shares of ε are parts of."""
        return sum((plan.weight for plan in self.plans), Fraction(0))

    @property
    def missing(self) -> tuple[BadSQL, ...]:
        """Metadata that is missing: each would be raised if it were asked."""
        return tuple(error for plan in self.plans for error in plan.missing)

    @property
    def finders(self) -> list[Plan]:
        """The SELECTs that find their keys: a δ is shared between them."""
        return [plan for plan in self.plans if plan.found is not None]

    @property
    def roots(self) -> dict[str, str]:
        """The roots that are charged, by their names in the system, with the owner's for them."""
        return {name: label for plan in self.plans for name, label in plan.table.facts.roots.items()}

    def knowing(self, values: Mapping[str, Any]) -> "Program":
        """The same once values are known: what has them in expressions of rows is planned again."""
        if all(name in self.values or name not in values for name in self.in_rows):
            return self
        return program(self.parsed, self.catalog, values)


def program(parsed: Parsed, catalog: Catalog, values: Mapping[str, Any] | None = None) -> Program:
    """What a statement asks, of which tables; values are those of its sub-queries that are known."""
    scalars = Scalars(dict(values or {}), any(isinstance(each, exp.Subquery) for each in parsed.sources))
    reader = Reader(parsed.text, parsed.hints, catalog, scalars)
    _check_tables(reader, parsed)
    found = whole(reader, parsed.tree)
    made = Program(
        parsed, catalog, tuple(scalars.found), found, frozenset(scalars.in_rows), dict(scalars.values)
    )
    _check_columns(reader, made)
    _check_found(reader, made, parsed.tree)
    if not made.weight and not made.missing:
        raise reader.error("this statement asks nothing of a protected table", parsed.tree)
    return made


def _check_tables(reader: Reader, parsed: Parsed) -> None:
    """BadSQL if a hint names a table that is not in the statement: it would say nothing in silence."""
    if not reader.hints.at_most:
        return
    known = {each.alias_or_name.lower() for each in parsed.sources}
    for named in reader.hints.at_most:
        if named.partition(".")[0] not in known:
            raise reader.error(f"at_most of {named!r}: no table is called so here{suggest(named, known)}")


def _check_columns(reader: Reader, found: Program) -> None:
    """BadSQL if a hint names a column that no SELECT has."""
    for name in reader.hints.weights:
        names = [output.name for plan in found.plans for output in plan.outputs]
        names += [KEYS for plan in found.finders if plan.found is not None and plan.found.counted == KEYS]
        if not any(alike(each, name) for each in names):
            raise reader.error(f"weight of {name!r}: no column is called so{suggest(name, names)}")


def _check_found(reader: Reader, found: Program, tree: exp.Expr) -> None:
    """BadSQL if a hint about keys is said and none are found: it would say nothing in silence."""
    hints = reader.hints
    if found.missing:
        return
    if hints.most_keys is not None and not found.finders:
        raise reader.error("most_keys is said, and every key is public: leave it out", tree)
    used = {name for plan in found.finders if plan.found is not None for name in plan.found.hinted}
    for name in hints.domains:
        if name not in used:
            raise reader.error(
                f"domain of {name!r}: no key that is to be found is called so. A key that is public, by its "
                "column or by WHERE … IN (…), needs none: leave it out",
                tree,
            )
