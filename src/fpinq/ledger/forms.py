"""Forms: what every class is called where it is written down or sent, and what its fields are called there.

The names here are the format (docs/reference/formats.md). Python's names are not: a class is found by the
`op` it declares (an entry by its `kind`), a field by what stands here. After a field is renamed in Python
its line says `wire=python`; after a class is, nothing changes. A name here is never changed and never
used again for something else. One that is added has a default, and `??`: it may be left out, and is
where it is the default, so that what was written before is still written so. `?` is of those of then: they
are always written.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any

from fpinq.model.frozen import dataclass

FORMS = {
    # actions
    "silent": "",
    "assign": "target transformation arguments?",
    "partition": "targets table by",
    "numbered": "stem number",
    "query": "table epsilon queries by?",
    "ask_scale": "table",
    "ask_budget": "",
    "ask_price": "table epsilon delta??",
    # what is asked at, and promised, where it is not an ε alone
    "rho": "amount",
    "approximate": "amount keys_delta epsilon delta",
    # observations
    "tau": "",
    "bottom": "",
    "told": "fact",
    "answered": "released charged",
    # transformations
    "literal_table": "schema rows",
    "identity": "",
    "select": "record",
    "where": "predicate",
    "distinct": "",
    "select_many": "records at_most",
    "explode": "value name at_most",
    "take": "at_most",
    "group_by": "keys aggregates",
    "limit_per_key": "at_most keys",
    "unique_by": "keys",
    "concat": "",
    "concat_all": "tables",
    "union": "bag?",
    "intersect": "bag?",
    "except": "bag?",
    "semi_join": "left_keys right_keys keep?",
    "group_join": "names left_keys right_keys left_aggregates right_aggregates",
    "join": "left_keys right_keys left right record outer?",
    "part": "by index",
    "flatten": "body",
    # and what they are made of
    "first": "at_most",
    "unique": "",
    "all": "",
    "aggregate": "function value?",
    "partitioning": "key keys",
    "product": "of",
    "clamp": "value lower upper step?",
    # expressions
    "column": "name",
    "literal": "value type",
    "apply": "operator arguments",
    # queries
    "count": "",
    "sum": "of",
    "moments": "of degree",
    "summary": "of degree",
    "lagrange": "of",
    "offset": "of",
    "cross_moments": "of degrees weight squares",
    "tally": "value values",
    "frequencies": "of",
    "tree": "of branching height",
    "rank": "of fraction",
    "ranks": "of fractions",
    "brackets": "of fractions below above",
    "depth": "of records",
    "choice": "of",
    "balance": "of fineness least_above least_below about?",
    "several": "of weights",
    "sparse": "key domain expected at_most spread?",
    "stable": "key domain delta distance at_most spread?",
    "spread": "body keys",
    # and domains of keys
    "integers": "low high",
    "dates": "first last",
    "strings": "max_bytes",
    "truths": "",
    "domains": "of",
    # plans and shapes
    "root": "root",
    "person_table": "table at_most",
    "term": "transformation arguments",
    "schema": "columns",
    "persons": "unit tables",
}

# By kind; what every entry has besides is in `entries`.
ENTRIES = {
    "ledger": "id format?",
    "root": "name shape budget contents? unit? caps? cap? block_of? read_off? columns? "
    "keys_caps?? keys_cap??",
    "action": "session analyst request action rule charged",
    "answer": "answers released",
    "freeze": "name",
    "unfreeze": "name",
    "upgrade": "format entries head spent",
}


@dataclass(frozen=True)
class Form:
    """A class as an object: its tag, its fields (the wire's names and Python's), and which must be there."""

    op: str
    names: tuple[tuple[str, str], ...]
    required: frozenset[str]
    # What is not written where it is this.
    unsaid: Mapping[str, Any]
    renamed: bool

    def in_python(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was read, under Python's names."""
        return {own: given[name] for name, own in self.names if name in given}


@cache
def form_of(kind: type) -> Form:
    """The form of a class; TypeError if it declares none, or has other fields than its form."""
    own = {field.name: field for field in fields(kind) if field.init and field.name != "op"}
    op, words = _declared(kind)
    names = tuple(_name(word) for word in words)
    if {name for _, name in names} != own.keys():
        raise TypeError(f"the form of {op!r} is {words}, and its class has {sorted(own)}")
    optional = {_name(word)[0] for word in words if word.endswith("?")}
    if optional != {wire for wire, name in names if _has_default(own[name])}:
        raise TypeError(f"the form of {op!r}: what has a default may be left out (?), and nothing else")
    required = frozenset(wire for wire, _ in names if wire not in optional)
    later = [_name(word) for word in words if word.endswith("??")]
    unsaid = {wire: own[name].default for wire, name in later}
    return Form(op, names, required, unsaid, any(wire != name for wire, name in names))


def _declared(kind: type) -> tuple[str, list[str]]:
    """The op of a class, and the words of its form."""
    table, declared = (ENTRIES, vars(kind)["kind"]) if "kind" in vars(kind) else (FORMS, _op(kind))
    if declared not in table:
        raise TypeError(f"the wire has no form for {kind!r}: declare its op, and what its fields are called")
    return declared, table[declared].split()


def _op(kind: type) -> Any:
    """As a field with a default, or as a plain attribute of the class itself."""
    return next((field.default for field in fields(kind) if field.name == "op"), vars(kind).get("op"))


def _name(word: str) -> tuple[str, str]:
    """The wire's name and Python's."""
    wire, _, name = word.rstrip("?").partition("=")
    return wire, name or wire


def _has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING
