"""What a database must say for itself. Nothing here has a default: totality is said, never inherited.

The lowering writes what all databases agree on (CASE, coalesce, comparisons, IN, `%` and abs of
integers, ||, substring, translate, GROUP BY, UNION …) and asks a dialect for the rest. SQL goes in
and SQL comes out. To be a dialect is to promise, for every method:

total           the SQL has a value or null on every row. It never raises, whatever the arguments are,
                within what the method's docstring promises about them; nor may any part of it, for a
                database may compute a part on rows where another one decides. An argument for which
                something would raise gets null in its place, by CASE.
deterministic   the value depends on the arguments alone: not on settings, other rows, the time or the
                place, nor on how the database chooses to compute it.
null            of a null argument is null, unless the docstring says otherwise.
steady          a row for which there is no value costs about as much as any other.

Arguments are the SQL of one value; their text may stand in any operator, and so will what is made of
them: the lowering puts it in parentheses. One may be mentioned as often as the method likes: what is
mentioned more than once is computed once, in a subquery below. Only methods that need values of
their own in between are given the `Bindings` and its `Code`. What a docstring promises about an argument
holds for it alone or for all together: where it would not, the argument is null.

Integers are BIGINTs and no other type: INTEGER or NUMERIC where a BIGINT is asked for is a mistake.
Floats are doubles. What is given is canonical (no NaN, no −0) unless said; what is made may be
NaN or −0 where said, and the lowering makes it canonical. Strings are compared by code point.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from fpinq.model.costs import Costs
from fpinq.model.expressions import Type, Value
from fpinq.model.frozen import dataclass

if TYPE_CHECKING:
    from fpinq.engines.sql.expressions import Bindings, Code, Parameters


# Values and their type, by the name of the column that has them.
Keyed = Mapping[str, tuple[Sequence[Value], Type]]


class Dialect(ABC):
    """A database's own words for what the lowering means."""

    __slots__ = ()

    # ── constants ────────────────────────────────────────────────────────────────────

    @abstractmethod
    def type_name(self, type_: Type) -> str:
        """The name of a column's type, as CAST(… AS name) takes it. Strings are ordered by code point."""

    @abstractmethod
    def null(self, type_: Type) -> str:
        """A null of a type."""

    @abstractmethod
    def integer(self, number: int) -> str:
        """A BIGINT: any of −2⁶³ to 2⁶³ − 1."""

    @abstractmethod
    def double(self, number: float) -> str:
        """A double, to the last bit; also ±∞. Never NaN."""

    @abstractmethod
    def moment(self, value: date, type_: Type) -> str:
        """A day, or a naive timestamp in microseconds, of the years 1 to 9999."""

    @abstractmethod
    def placeholder(self, name: str) -> str:
        """Where the string bound as `name` (p0, p1, …) stands in the text: a string, by code point."""

    # ── how much work ────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def costs(self) -> Costs:
        """What every operator and step takes at the worst, in units: measured by bench/work.py, not guessed.
        A server refuses by it what one record could make so long that the clock tells.
        """

    # ── how much text ────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def max_weight(self) -> int:
        """How many leaves an expression may have, once the optimiser has copied into it what it mentions."""

    @property
    @abstractmethod
    def text_weight(self) -> int:
        """How many leaves an operator weighs that reads every character of a text: 1 if nobody copies it."""

    @abstractmethod
    def barrier(self, select: str) -> str:
        """The SELECT, such that the optimiser copies none of its expressions into what is above it."""

    # ── integers ─────────────────────────────────────────────────────────────────────

    @abstractmethod
    def quotient(self, a: str, b: str) -> str:
        """a / b rounded towards zero, a BIGINT. b is not 0, and a is not −2⁶³ where b is −1."""

    @abstractmethod
    def multiply(self, bindings: "Bindings", a: "Code", b: "Code") -> "Code":
        """a · b as a BIGINT; null where it does not fit. Both are any BIGINT."""

    # ── floats ───────────────────────────────────────────────────────────────────────

    @abstractmethod
    def add_floats(self, a: str, b: str) -> str:
        """a + b by IEEE 754: ±∞ beyond the doubles; NaN of ∞ − ∞."""

    @abstractmethod
    def subtract_floats(self, a: str, b: str) -> str:
        """a − b by IEEE 754: ±∞ beyond the doubles; NaN of ∞ − ∞."""

    @abstractmethod
    def multiply_floats(self, a: str, b: str) -> str:
        """a · b by IEEE 754: ±∞ beyond the doubles, ±0 or subnormal below them; NaN of 0 · ∞.

        One may be raw: NaN and −0 are multiplied as IEEE 754 says.
        """

    @abstractmethod
    def divide_floats(self, a: str, b: str) -> str:
        """a / b by IEEE 754: ±∞ beyond the doubles, ±0 or subnormal below them; NaN of ∞ / ∞. b is not 0."""

    @abstractmethod
    def float_remainder(self, a: str, b: str) -> str:
        """C's fmod, exact: what remains of a, with its sign. a is finite; b is not 0, and may be infinite."""

    @abstractmethod
    def floor(self, a: str) -> str:
        """The largest whole double that is at most a; ±∞ of themselves."""

    @abstractmethod
    def ceil(self, a: str) -> str:
        """The smallest whole double that is at least a; ±∞ of themselves. May be −0."""

    @abstractmethod
    def round(self, a: str) -> str:
        """The nearest whole double, of two the even one; ±∞ of themselves. May be −0."""

    @abstractmethod
    def sqrt(self, a: str) -> str:
        """The square root, rounded once. a ≥ 0, or ∞."""

    @abstractmethod
    def exp(self, a: str) -> str:
        """eᵃ: ∞ beyond the doubles, 0 below them."""

    @abstractmethod
    def log(self, a: str) -> str:
        """The natural logarithm. a > 0, or ∞."""

    @abstractmethod
    def power(self, a: str, b: str) -> str:
        """C's pow(a, b): ±∞ beyond the doubles, ±0 below; 1 where a is 1 or b is 0, and of −1 to ±∞; NaN of a
        negative a where b is finite and not whole. Where a is 0, b is not negative. May be −0.
        """

    @abstractmethod
    def is_nan(self, a: str) -> str:
        """Whether a double is NaN; one that was computed, not one as it is found in data."""

    @abstractmethod
    def canonical(self, a: str) -> str:
        """A double as it is found in data: null of NaN, 0 of −0, whatever its file says of its values."""

    @abstractmethod
    def clamp_as_found(self, a: str, low: str, high: str) -> str:
        """A double as it is found in data, but no less than low and no more than high, two constants;
        null of NaN, whatever its file says of its values. May be −0.
        """

    @abstractmethod
    def clamp_integer(self, a: str, low: str, high: str) -> str:
        """A BIGINT, but no less than low and no more than high, which is no less than low; null of null."""

    @abstractmethod
    def nearest_integer(self, a: str) -> str:
        """The nearest integer as a BIGINT, of two the even one. a is no farther than 2⁵³ from 0."""

    # ── conversions ──────────────────────────────────────────────────────────────────

    @abstractmethod
    def whole_part(self, a: str) -> str:
        """A double without its fraction as a BIGINT: rounded towards zero. −2⁶³ ≤ a < 2⁶³."""

    @abstractmethod
    def number_of_truth(self, a: str, type_: Type) -> str:
        """1 for true and 0 for false, as a BIGINT or a double."""

    @abstractmethod
    def written(self, a: str, type_: Type) -> str:
        """A BIGINT in decimal digits, or a day as YYYY-MM-DD, with four digits of the year: a string."""

    @abstractmethod
    def matches(self, text: str, pattern: str) -> str:
        """Whether all of a text is of a pattern; a newline at its end is a character like others.

        The pattern has classes of ASCII characters, (?:…|…), ?, {m,n}, and no quote and no backslash.
        """

    @abstractmethod
    def parse_integer(self, bindings: "Bindings", text: "Code") -> "Code":
        """The BIGINT that a text says; null where it does not fit. It is [+-]?[0-9]{1,19}."""

    @abstractmethod
    def parse_float(self, text: str) -> str:
        """The double nearest to what a text says, ±∞ beyond the doubles, ±0 below them: correctly rounded.

        The text is [+-]?([0-9]{1,30}([.][0-9]{0,30})?|[.][0-9]{1,30})([eE][+-]?[0-9]{1,3})?.
        """

    @abstractmethod
    def parse_date(self, text: str) -> str:
        """The day that a text says: YYYY-MM-DD, of a day that exists."""

    @abstractmethod
    def parse_timestamp(self, text: str) -> str:
        """The timestamp that a text says: YYYY-MM-DD[ T]hh:mm:ss.ffffff, of a day that exists."""

    # ── strings ──────────────────────────────────────────────────────────────────────

    @abstractmethod
    def characters(self, text: str) -> str:
        """How many code points a string has, an integer of any type."""

    @abstractmethod
    def octets(self, text: str) -> str:
        """How many bytes a string has in UTF-8, an integer of any type: cheaper than its characters."""

    @abstractmethod
    def lower_ascii(self, text: str) -> str:
        """A string with a–z in place of A–Z. Asked for strings of ASCII only: others may be mapped anyhow."""

    @abstractmethod
    def upper_ascii(self, text: str) -> str:
        """A string with A–Z in place of a–z. Asked for strings of ASCII only: others may be mapped anyhow."""

    @abstractmethod
    def strip(self, text: str, characters: str) -> str:
        """A string without those of the characters (SQL, a constant) that are at its ends."""

    @abstractmethod
    def contains(self, text: str, part: str) -> str:
        """Whether the part is somewhere in the text; the empty one is everywhere."""

    @abstractmethod
    def starts_with(self, text: str, part: str) -> str:
        """Whether the text begins with the part."""

    @abstractmethod
    def ends_with(self, text: str, part: str) -> str:
        """Whether the text ends with the part."""

    @abstractmethod
    def split(self, text: str, separator: str, parameters: "Parameters") -> str:
        """The list of the strings between the separators, as Python's split: of the empty text, one that is
        empty. The separator is what a program wrote, not SQL and not empty: bind it.
        """

    # ── time ─────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def days_between(self, a: str, b: str) -> str:
        """The days from b to a, two dates; a BIGINT."""

    @abstractmethod
    def microseconds_between(self, a: str, b: str) -> str:
        """The microseconds from b to a, two timestamps; a BIGINT."""

    @abstractmethod
    def part(self, name: str, a: str) -> str:
        """The year, month, day, weekday (Monday is 0) or hour of a date or a timestamp; a BIGINT."""

    # ── relations ────────────────────────────────────────────────────────────────────
    #
    # A source is something to select FROM, in parentheses if it is a SELECT. Columns are bare names.

    @abstractmethod
    def shared(self, name: str, select: str) -> str:
        """What WITH says of a SELECT that is used several times: computed once, if that can be said."""

    @abstractmethod
    def where(self, predicate: str) -> str:
        """What follows WHERE: true on exactly the rows on which the predicate is."""

    @abstractmethod
    def same(self, a: str, b: str) -> str:
        """Whether two values are equal, or both null: never null."""

    @abstractmethod
    def semi_join(self, left: str, right: str, on: str, *, keep: bool) -> str:
        """What follows SELECT … FROM: the rows of the left, as l, for which there is one of the right, as r,
        such that `on` is true; without `keep` those for which there is none. Each as often as it was.
        """

    @abstractmethod
    def records(self, records: Sequence[Sequence[str]]) -> Sequence[tuple[str, str]]:
        """What a SELECT lists, as (name, SQL), to give for each row one row per record.

        They are the columns c0, c1, … of a row, and what is listed beside them is repeated. All records
        have the same types.
        """

    @abstractmethod
    def pieces(self, strings: str, at_most: int) -> str:
        """What a SELECT lists to give for each row one row per string of a list, the first at_most of them;
        none of a null.
        """

    # ── the first rows ───────────────────────────────────────────────────────────────

    @abstractmethod
    def ordered(self, column: str, type_: Type) -> str:
        """A column in ORDER BY: null first, false before true, strings by code point."""

    @abstractmethod
    def first(self, select: str, by: Sequence[str], at_most: int) -> str:
        """The first at_most rows of a SELECT in an order; any, if it has no columns. A limit has any size."""

    @abstractmethod
    def first_per_key(self, source: str, keys: Sequence[str], by: Sequence[str], at_most: int) -> str:
        """The source with only the first at_most rows, in an order, of each key; null is a key too.

        There are one or more keys. Columns may be added, not named c…, k…, u or i. A limit has any size.
        """

    @abstractmethod
    def row_number(self, keys: Sequence[str], by: Sequence[str]) -> str:
        """The number from 1 of a row among those of its key, in an order, in any if there is none."""

    @abstractmethod
    def only(self, column: str, type_: Type) -> str:
        """An aggregate: the value of a group of one row, null if it is null; anything of a larger group."""

    @abstractmethod
    def extreme(self, function: str, column: str, type_: Type) -> str:
        """An aggregate: the least (min) or the greatest (max) value, false before true; nulls left out."""

    # ── wide sums ────────────────────────────────────────────────────────────────────

    @abstractmethod
    def wide_sum(self, column: str, magnitude: int) -> Sequence[str]:
        """Aggregates that together are the exact sum of a BIGINT column, of any number of rows.

        No value is farther from 0 than magnitude. Nulls add nothing; of no values they are null.
        """

    @abstractmethod
    def total(self, sums: Sequence[str]) -> str:
        """The sum that columns of `wide_sum` stand for, a BIGINT: 0 of no values, null if it does not fit."""

    @abstractmethod
    def exact(self, sums: Sequence[Any]) -> int:
        """The sum that one row of `wide_sum` stands for, as the driver gave it; 0 of no values."""

    # ── keys of parts ────────────────────────────────────────────────────────────────

    @property
    @abstractmethod
    def most_listed_keys(self) -> int:
        """Up to how many keys of a partition are compared one by one; of more there is a table."""

    @property
    @abstractmethod
    def writes_rows(self) -> bool:
        """Whether the rows of a literal table are written out; else its columns are bound, as keys are."""

    @abstractmethod
    def keys(self, columns: Keyed, parameters: "Parameters") -> "Listing":
        """A listing of the keys that values are side by side, each column of one type: bound, not written.
        The columns of its source are v0, v1, …
        """

    @abstractmethod
    def grouped_by_key(
        self, source: str, listed: str, groups: Sequence[str], listings: "Sequence[Listing]"
    ) -> str:
        """SELECT listed FROM source GROUP BY groups, of the rows that are in every listing: whose columns are
        `same` as those of a row of it.

        The groups begin with the columns of the listings, so which rows stay may be decided before or
        after grouping.
        """


@dataclass(frozen=True)
class Listing:
    """A source of keys, and which column of it stands for which column of what is grouped."""

    source: str
    columns: Mapping[str, str]
    nulls: bool

    @staticmethod
    def of(columns: Keyed, source: str) -> "Listing":
        """The source of columns v0, v1, … in that order."""
        nulls = any(None in values for values, _ in columns.values())
        return Listing(source, {name: f"v{i}" for i, name in enumerate(columns)}, nulls)

    def on(self, dialect: Dialect) -> str:
        """Whether a row l is `same` as a row r of the listing."""
        return " AND ".join(dialect.same(f"l.{ours}", f"r.{theirs}") for ours, theirs in self.columns.items())
