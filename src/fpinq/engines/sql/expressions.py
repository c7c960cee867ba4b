"""Row expressions to SQL that has a value, or null, for every row.

Total by construction: an operator that could raise gets null in place of the
argument that would make it raise, so nothing depends on which rows the engine
chooses to evaluate. Never a TRY that catches: a failing row costs it a hundred
times more than a good one, which tells about the row.

An argument that an operator mentions more than once is computed once, in a
subquery below (a *binding*), so the text grows linearly with the expression.
Steps that look at one row at a time share one SELECT, and the bindings below
it: a column that an earlier step computes is written where it is mentioned if
that is once, and bound if it is more often (docs/decisions/0109).
Integers carry an interval and floats whether they can be infinite: a guard
that cannot fire is left out.

Nothing that a program wrote appears in the text: columns have our names,
numbers and dates are rendered from their values, strings are bound parameters.
"""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import field, replace
from fractions import Fraction
from math import inf
from typing import Any

from fpinq.engines.sql.dialect import Dialect
from fpinq.engines.sql.numbers import clip
from fpinq.engines.sql.operators import OPERATORS, RESULTS, is_in
from fpinq.engines.sql.scans import Scan
from fpinq.engines.sql.texts import split
from fpinq.model.clamps import Clamp
from fpinq.model.expressions import (
    INT64_MAX,
    INT64_MIN,
    Column,
    Expression,
    Literal,
    Schema,
    Type,
    Value,
    nodes_of,
)
from fpinq.model.frozen import dataclass
from fpinq.model.operators import OPERATORS as MODEL

# The names that we give: of bindings, and of columns (an approximation from above).
_BOUND = re.compile(r"b\d+_\d+")
_NAME = re.compile(r"[a-z]\w*")
# Where a value stands that is bound.
_PLACE = re.compile(r"[$:]\w+")

# Stand for the arguments of a dialect's SQL while their mentions are counted; no SQL has them.
_MARKS = ("\ue000", "\ue001")


class Parameters:
    """The values bound to one SQL text, each once; and how much was written: steps, operators, constants, and
    how many columns the widest SELECT has, but for a few that are ours.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.values: dict[str, str] = {}
        self.others: dict[str, Any] = {}
        self.written = self.widest = 0

    def copied(self) -> "Parameters":
        """The same, for another text."""
        other = Parameters(self.dialect)
        other.values, other.others, other.written = dict(self.values), dict(self.others), self.written
        other.widest = self.widest
        return other

    def selects(self, columns: int) -> None:
        """A SELECT of so many columns is written."""
        self.widest = max(self.widest, columns)

    def bind(self, text: str) -> str:
        """The placeholder of a string."""
        return self.dialect.placeholder(self.values.setdefault(text, f"p{len(self.values)}"))

    def give(self, name: str, value: Any) -> str:
        """The placeholder of a value of another type, under a name of its own."""
        self.others[name] = value
        return self.dialect.placeholder(name)

    def given(self) -> dict[str, Any]:
        """All that was bound."""
        return {name: text for text, name in self.values.items()} | self.others

    def of(self, sql: str) -> dict[str, Any]:
        """What to execute a text with: what is bound in it."""
        mentioned = set(_PLACE.findall(sql))
        return {name: value for name, value in self.given().items() if self._place(name) in mentioned}

    def _place(self, name: str) -> str:
        place = _PLACE.search(self.dialect.placeholder(name))
        assert place is not None
        return place.group()


@dataclass(frozen=True, slots=True)
class Code:
    """SQL for an expression, with what is known about its values.

    `level` is how many layers of bindings it needs below it; `weight` how many
    leaves it has when all of them are written out. An atom costs nothing to
    repeat. A raw float may still be NaN or −0.
    """

    sql: str
    type: Type
    level: int = 0
    weight: int = 1
    atom: bool = False
    low: int = INT64_MIN
    high: int = INT64_MAX
    finite: bool = False
    raw: bool = False

    @property
    def constant(self) -> int | None:
        """The integer it is, if it is always the same."""
        return self.low if self.low == self.high and self.atom else None

    def or_(self, other: "Code") -> "Code":
        """This code, knowing only what holds for the other one too."""
        return replace(
            self,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            finite=self.finite and other.finite,
            weight=max(self.weight, other.weight),
        )


@dataclass
class Layers:
    """The bindings over one source with columns of these names, layer on layer: each reads what is below it.

    Whether a binding is in the text is decided when something is selected that needs it.
    """

    names: frozenset[str] = frozenset()
    bound: list[dict[str, str]] = field(default_factory=list)
    barriers: set[int] = field(default_factory=set)

    def copied(self) -> "Layers":
        """The same, for others to be bound on."""
        return Layers(self.names, [dict(layer) for layer in self.bound], set(self.barriers))

    def needed(self, texts: Iterable[str]) -> set[str]:
        """The names of the source and of bindings that SQL texts mention."""
        words = set(_NAME.findall(" ".join(texts)))
        return {word for word in words if word in self.names or _BOUND.fullmatch(word)}


@dataclass
class Bindings:
    """The columns that expressions over one relation can read, and the bindings they made.

    `tests` are true of every row of it. A column that is computed is bound when it is first read, unless
    it is one of those that are read `once`.
    """

    columns: dict[str, Code]
    schema: Schema
    parameters: Parameters
    layers: Layers = field(default_factory=Layers)
    tests: tuple[Code, ...] = ()
    once: Container[str] = ()

    @property
    def dialect(self) -> Dialect:
        """Whose SQL it is."""
        return self.parameters.dialect

    def lower(self, expression: Expression) -> Code:
        """The SQL of a well-typed expression. Its floats are canonical."""
        if isinstance(expression, Column):
            return self._canonical(self._column(expression.name))
        if isinstance(expression, Literal):
            return self.literal(expression.value, expression.type)
        if expression.operator == "split":
            code = split(self, self.lower(expression.arguments[0]), expression.arguments[1])
        elif expression.operator == "is_in":
            return is_in(self, *map(self.lower, expression.arguments))
        else:
            arguments = [self.lower(argument) for argument in expression.arguments]
            takes = tuple([argument.type for argument in arguments])
            code = OPERATORS[expression.operator](self, RESULTS[expression.operator, takes], *arguments)
            if takes[0] is not Type.STRING:
                return code
        reads = MODEL[expression.operator].per_character > 1
        return replace(code, weight=max(code.weight, self.dialect.text_weight)) if reads else code

    def output(self, expression: Expression) -> Code:
        """The SQL of an expression that becomes a column or a predicate: no heavier than is allowed."""
        self.parameters.written += nodes_of(expression)
        code = self.lower(expression)
        return self.bind(code) if code.weight > self.dialect.max_weight else code

    def literal(self, value: Value, type_: Type) -> Code:
        """A constant."""
        sql = render(value, type_, self.parameters)
        if type_ is Type.INT64 and isinstance(value, int):
            return Code(sql, type_, atom=True, low=value, high=value)
        return Code(sql, type_, atom=True, finite=isinstance(value, float) and abs(value) != inf)

    def are(self, codes: Sequence[Code], values: Sequence[Value]) -> str:
        """Whether each is the same as a constant: a null is the same as null. Null may stand for false."""
        same = [
            f"{code.sql} IS NULL" if value is None else f"{code.sql} = {self.literal(value, code.type).sql}"
            for code, value in zip(codes, values, strict=True)
        ]
        return " AND ".join(same)

    def quantise(self, clamp: Clamp) -> Code:
        """The clamped grid point of a row, a BIGINT between the bounds, or null."""
        value = clamp.value
        code = self._column(value.name) if isinstance(value, Column) else self.lower(value)
        if code.type is Type.INT64:
            return clip(self, Type.INT64, code, self._bound(clamp.lower), self._bound(clamp.upper))
        # Powers of two: each of these products is exact. Where bounds in units of 1 would be
        # beyond the doubles, the value is scaled first.
        unit = clamp.step
        if unit > 2**900:
            code, unit = replace(_scaled(self, code, 1 / unit), raw=code.raw), Fraction(1)
        point = self.bind(code)
        low, high = (self.double(bound * unit) for bound in (clamp.lower, clamp.upper))
        ends = f"WHEN {point.sql} <= {low} THEN {low} WHEN {point.sql} >= {high} THEN {high}"
        sql = f"CASE {ends} ELSE {point.sql} END"
        if point.raw:
            sql = self.dialect.clamp_as_found(point.sql, low, high)
        clamped = _scaled(self, self.code(sql, Type.FLOAT64, point, times=6), 1 / unit)
        return self.apply(
            self.dialect.nearest_integer, Type.INT64, clamped, low=clamp.lower, high=clamp.upper
        )

    def _column(self, name: str) -> Code:
        code = self.columns[name]
        if not code.atom and name not in self.once:
            code = self.columns[name] = self.bind(code)
        return code

    def _bound(self, bound: int) -> Code:
        return self.literal(bound, Type.INT64)

    def _canonical(self, code: Code) -> Code:
        if not code.raw:
            return code
        return self.apply(self.dialect.canonical, code.type, code)

    def integer(self, number: int) -> str:
        """A BIGINT."""
        return self.dialect.integer(number)

    def double(self, number: float | Fraction) -> str:
        """A double."""
        return self.dialect.double(float(number))

    def bind(self, code: Code) -> Code:
        """The same value as something that costs nothing to repeat."""
        if code.atom:
            return code
        layers = self.layers
        while len(layers.bound) <= code.level:
            layers.bound.append({})
        layer = layers.bound[code.level]
        if code.sql not in layer:
            layer[code.sql] = f"b{code.level}_{len(layer)}"
        if code.weight > self.dialect.max_weight:
            layers.barriers.add(code.level)
        weight = 1 if code.level in layers.barriers else code.weight
        return replace(code, sql=layer[code.sql], level=code.level + 1, weight=weight, atom=True)

    def select(
        self, source: str | Scan, outputs: Sequence[tuple[str, Code]], where: Code | None = None
    ) -> str:
        """SELECT outputs FROM source, of the rows that pass the tests, with the bindings needed in between.

        A test is made as early as its bindings are there: what is bound above it is computed
        for the rows that pass. Of a scan, the columns that something mentions are made.
        """
        tests = [*self.tests, *([where] if where else [])]
        listed = [f"{code.sql} AS {name}" for name, code in outputs]
        selects, needed = [_Select(listed)], self.layers.needed(listed)
        for level in reversed(range(len(self.layers.bound))):
            needed |= self.layers.needed(selects[-1].take(tests, level))
            bound = {name: sql for sql, name in self.layers.bound[level].items() if name in needed}
            if bound:
                needed = needed.difference(bound)
                listed = [*sorted(needed), *(f"{sql} AS {name}" for name, sql in bound.items())]
                selects.append(_Select(listed, level in self.layers.barriers))
                needed |= self.layers.needed(bound.values())
        needed |= self.layers.needed(selects[-1].take(tests, -1))
        written = source.only(needed) if isinstance(source, Scan) else source
        for select in reversed(selects):
            self.parameters.selects(len(select.listed))
            written = select.written(written, self.dialect)
        return written[1:-1]

    def code(self, sql: str, type_: Type, *parts: Code, times: int = 1, **known: Any) -> Code:
        """SQL made of parts, each mentioned `times` times."""
        level = max((part.level for part in parts), default=0)
        weight = min(times * sum(part.weight for part in parts), 10**9)
        return Code(f"({sql})", type_, level, max(weight, 1), **known)

    def apply(self, template: Callable[..., str], type_: Type, *arguments: Code, **known: Any) -> Code:
        """A dialect's SQL over arguments; those that it mentions more than once are bound."""
        sql, weight, level = template(*_MARKS[: len(arguments)]), 0, 0
        for mark, argument in zip(_MARKS, arguments, strict=False):
            times = sql.count(mark)
            code = self.bind(argument) if times > 1 else argument
            sql = sql.replace(mark, code.sql)
            weight, level = weight + times * code.weight, max(level, code.level)
        return Code(f"({sql})", type_, level, max(min(weight, 10**9), 1), **known)


@dataclass
class _Select:
    """One of the SELECTs that are nested: what it lists, the tests of its rows."""

    listed: Sequence[str]
    barrier: bool = False
    tests: list[str] = field(default_factory=list)

    def take(self, tests: list[Code], level: int) -> list[str]:
        """Make the tests here that need a layer beyond this level: they are left to nobody else."""
        taken = [test.sql for test in tests if test.level > level]
        tests[:] = [test for test in tests if test.level <= level]
        self.tests = [*taken, *self.tests]
        return taken

    def written(self, source: str, dialect: Dialect) -> str:
        """The SELECT from a source, as a source."""
        where = f" WHERE {dialect.where(' AND '.join(self.tests))}" if self.tests else ""
        select = f"SELECT {', '.join(self.listed)} FROM {source} AS d{where}"
        return f"({dialect.barrier(select) if self.barrier else select})"


def render(value: Value, type_: Type, parameters: Parameters) -> str:
    """A constant as SQL. Only strings can say anything, and they are bound, not written."""
    dialect = parameters.dialect
    if value is None:
        return dialect.null(type_)
    if type_ is Type.STRING:
        return parameters.bind(str(value))
    if type_ is Type.BOOL:
        return "TRUE" if value else "FALSE"
    if type_ is Type.INT64:
        return dialect.integer(int(value))  # type: ignore[arg-type]
    if type_ is Type.FLOAT64:
        return dialect.double(float(value))  # type: ignore[arg-type]
    return dialect.moment(value, type_)  # type: ignore[arg-type]


def _scaled(bindings: Bindings, code: Code, factor: Fraction) -> Code:
    """A double times a power of two."""
    if factor == 1:
        return code
    by = bindings.double(factor)
    if factor > 1:  # from within the bounds to the grid: neither beyond the doubles nor below them
        return bindings.code(f"{code.sql} * {by}", Type.FLOAT64, code)
    return bindings.apply(lambda a: bindings.dialect.multiply_floats(a, by), Type.FLOAT64, code)
