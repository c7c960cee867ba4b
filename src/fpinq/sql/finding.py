"""GROUP BY of keys that nobody listed: a count finds them, at a δ, or within the domains that hints name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from fpinq.client.bounds import Known
from fpinq.client.discovery import MOST_PARTS, Discover, discover, natural, query_of, stand_ins
from fpinq.client.facts import Facts
from fpinq.client.queries import Count
from fpinq.model.domains import (
    DateDomain,
    IntegerDomain,
    KeyDomain,
    ProductDomain,
    SimpleDomain,
    StringDomain,
    TruthDomain,
)
from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Expression, Type
from fpinq.model.frozen import dataclass
from fpinq.model.queries import Discovery
from fpinq.sql.aggregates import Asked
from fpinq.sql.keys import public_values
from fpinq.sql.relations import Reader, cells_of
from fpinq.sql.scopes import Domain, alike

# What the counts are called that only find keys.
KEYS = "keys"
FOUND = (Type.INT64, Type.STRING, Type.DATE, Type.BOOL)


@dataclass(frozen=True)
class Finding:
    """Which aggregate finds the keys of a SELECT, how, which values of a key are public, by which hints."""

    counted: str
    how: Discover
    listed: tuple[frozenset[Any] | None, ...]
    hinted: frozenset[str]

    def keeps(self, key: Sequence[Any]) -> bool:
        """Whether a key that was found is one: where values are public, no others are."""
        return all(some is None or each in some for each, some in zip(key, self.listed, strict=True))

    def at(self, finders: int) -> Discover:
        """How, where so many SELECTs share the δ."""
        return self.how if self.how.delta is None else replace(self.how, delta=self.how.delta / finders)


def finding_of(
    reader: Reader,
    nodes: Sequence[exp.Expr],
    names: Sequence[Sequence[str]],
    keys: Mapping[str, tuple[Expression, Type]],
    domains: Sequence[Domain],
    known: Mapping[str, Known],
    aggregates: dict[str, Asked],
    weights: dict[str, Fraction],
) -> Finding | None:
    """How the keys of GROUP BY are found; None where nothing says so. A count is added if there is none."""
    hints = reader.hints
    values = public_values([tree for tree, _ in keys.values()], domains, known)
    within: list[SimpleDomain | None] = []
    hinted: set[str] = set()
    for node, called, (_, type_), some in zip(nodes, names, keys.values(), values, strict=True):
        if some is None and type_ not in FOUND:
            return None
        hint = next((name for name in hints.domains if any(alike(name, one) for one in called)), None)
        hinted |= set() if hint is None else {hint}
        within.append(_within(reader, node, None if hint is None else hints.domains[hint], type_, some))
    said = [domain for domain in within if domain is not None]
    if hints.delta is None and len(said) < len(within):
        return None
    whole: KeyDomain | None = None
    if said:  # of the others, all that there can be
        types = [type_ for _, type_ in keys.values()]
        each = [domain or natural(type_) for domain, type_ in zip(within, types, strict=True)]
        try:
            whole = each[0] if len(each) == 1 else ProductDomain(tuple(each))
        except ProgramError as error:
            raise reader.error(str(error), nodes[0]) from None
    counted = next((name for name, one in aggregates.items() if _counts(one)), KEYS)
    if counted is KEYS:
        aggregates[KEYS] = Asked(Count(), Type.INT64)
        weights[KEYS] = hints.weights.get(KEYS, Fraction(1))
    how = discover(delta=hints.delta, within=whole, at_most=hints.most_keys or MOST_PARTS)
    listed = tuple(None if some is None else frozenset(some) for some in values)
    return Finding(counted, how, listed, frozenset(hinted))


def _counts(asked: Asked) -> bool:
    return type(asked.query) is Count and asked.part is None


def _within(
    reader: Reader, node: exp.Expr, hint: SimpleDomain | None, type_: Type, values: Sequence[Any] | None
) -> SimpleDomain | None:
    """The domain of a key: a hint's, or one that has its public values; None if nothing is said."""
    if hint is not None:
        if hint.types != (type_,):
            raise reader.error(
                f"this is {type_.value}, and its domain is of {hint.types[0].value}: domain(city, 32) is of "
                "texts, domain(age, 0, 120) of integers, domain(born, 1900-01-01, 2030-12-31) of dates",
                node,
            )
        return hint
    some = [value for value in values or () if value is not None]
    if type_ is Type.BOOL:
        return TruthDomain()
    if not some:
        return None
    if type_ is Type.INT64:
        return IntegerDomain(min(some), max(some))
    if type_ is Type.DATE:
        return DateDomain(min(some), max(some))
    return StringDomain(max(len(text.encode()) for text in some)) if type_ is Type.STRING else None


# ── what is asked ────────────────────────────────────────────────────────────────────


def asked_for_keys(facts: Facts, by: Mapping[str, Expression], how: Discover) -> Discovery:
    """The query that finds them."""
    return query_of(facts, lambda row: cells_of(row, by), how, counts=True)[1]


def instead_of_found(
    facts: Facts, by: Mapping[str, Expression], how: Discover, most: int
) -> list[tuple[Any, ...]]:
    """So many keys of the domain, in place of those that will be found."""
    keys = stand_ins(asked_for_keys(facts, by, how), most)
    return [key if isinstance(key, tuple) else (key,) for key in keys]
