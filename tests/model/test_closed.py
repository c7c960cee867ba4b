"""An action is closed data: no object of another class gets a say."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from fpinq.model.actions import Action, AskScale, Assign, Partition, Query
from fpinq.model.clamps import Clamp
from fpinq.model.closed import check_closed
from fpinq.model.errors import BadAction, BadEpsilon, BadExpression, BadTransformation, ProgramError
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.plans import Flatten, Persons, PersonTable, Term
from fpinq.model.queries import Count, Moments, Sum
from fpinq.model.semantics import initial, step, with_root
from fpinq.model.transformations import (
    Aggregate,
    Concat,
    First,
    GroupBy,
    Identity,
    Join,
    LiteralTable,
    Partitioning,
    PartOf,
    SelectMany,
    Take,
    Unique,
    Where,
)

S = Schema.of({"k": Type.INT64})
K = Column("k")
C = initial({"A": (S, Fraction(1)), "P": (Persons("k", (("v", S),)), Fraction(1))})
RECORD = (("k", K),)


class Name(str):
    """A name that is another one each time it is looked up."""

    hashes = iter(range(10**6))

    def __hash__(self) -> int:
        return next(self.hashes)

    def __eq__(self, other: object) -> bool:
        return True


class Free(SelectMany):
    stability = (0,)  # type: ignore[assignment]


class Sly(Sum):
    sensitivity = 0  # type: ignore[assignment]


@dataclass(frozen=True)
class Looks:
    op: str = "where"
    stability = (0,)

    def shape(self, table: Schema) -> Schema:
        return table


ATTACKS: list[Any] = [
    "query everything",
    None,
    AskScale(5),  # type: ignore[arg-type]
    AskScale([]),  # type: ignore[arg-type]
    Query(Name("A"), Fraction(1), (Count(),)),
    Query("A", Fraction(1), [Count()]),  # type: ignore[arg-type]
    Query("A", Fraction(1), None),  # type: ignore[arg-type]
    Query("A", Fraction(1), (Sly(Clamp(K, 0, 1)),)),
    Query("A", Fraction(1), (Moments(Clamp(K, 0, 1), 2.0),)),  # type: ignore[arg-type]
    Query("A", Fraction(1), (Moments(Clamp(K, 0, 1), True),)),
    Query("A", Fraction(1), (Sum(Clamp(K, 0, 1, None)),)),  # type: ignore[arg-type]
    Query("A", Fraction(1), (Count(),), "k"),  # type: ignore[arg-type]
    Query("A", Fraction(1), (Sum("k"),)),  # type: ignore[arg-type]
    Assign("t", Free((RECORD,), 1), ("A",)),
    Assign("t", Looks(), ("A",)),  # type: ignore[arg-type]
    Assign("t", Where(5), ("A",)),  # type: ignore[arg-type]
    Assign("t", Where(Column(5)), ("A",)),  # type: ignore[arg-type]
    Assign("t", Where(Apply("not", [Column("k")])), ("A",)),  # type: ignore[arg-type]
    Assign("t", SelectMany([RECORD], 1), ("A",)),  # type: ignore[arg-type]
    Assign("t", SelectMany((("k", K),), 1), ("A",)),  # type: ignore[arg-type]
    Assign("t", SelectMany(((("k", K, K),),), 1), ("A",)),  # type: ignore[arg-type]
    Assign("t", Take("2"), ("A",)),  # type: ignore[arg-type]
    Assign("t", Take(1, "take everything"), ("A",)),  # type: ignore[arg-type]
    Assign("t", PartOf(Partitioning(K, (0, 1)), "0"), ("A",)),  # type: ignore[arg-type]
    Assign("t", Join((K,), (K,), First(None), Unique(), RECORD), ("A", "A")),  # type: ignore[arg-type]
    Assign("t", GroupBy(RECORD, (("n", Aggregate("cuont")),)), ("A",)),  # type: ignore[arg-type]
    Assign("t", Concat(), ["A", "A"]),  # type: ignore[arg-type]
    Assign("t", Flatten(Term(SelectMany((RECORD,), 1.0), (PersonTable("v", 1),))), ("P",)),  # type: ignore[arg-type]
    Partition(([], []), "A", Partitioning(K, (0, 1))),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: repr(attack)[:60])
def test_what_is_not_closed_data_is_refused(attack: Any) -> None:
    with pytest.raises(BadAction, match="not an action of the language"):
        step(C, attack)


def test_a_plan_of_what_can_change_cannot_be_made() -> None:
    with pytest.raises(TypeError):
        Term(Identity(), [PersonTable("v", 1)])  # type: ignore[arg-type]


def test_the_message_says_where() -> None:
    with pytest.raises(BadAction, match=r"Assign.transformation: Take.at_most: expected int, not str"):
        step(C, Assign("t", Take("2"), ("A",)))  # type: ignore[arg-type]


def test_the_language_s_own_actions_pass() -> None:
    check_closed(Assign("t", GroupBy(RECORD, (("n", Aggregate("sum", Clamp(K, 0, 1))),)), ("A",)), Action)
    check_closed(Query("A", Fraction(1), (Count(),), Partitioning(K, (None, 1))), Action)


@pytest.mark.parametrize(
    ("name", "shape", "total", "error"),
    [
        ("B", S, float("inf"), BadEpsilon),
        ("B", S, -1, BadEpsilon),
        ("B", S, None, BadEpsilon),
        ("A", S, 1, BadTransformation),
        ("", S, 1, BadTransformation),
        ("B", Schema((("k", Type.STRINGS),)), 1, BadTransformation),
        ("B", Schema((("k", Type.INT64), ("k", Type.INT64))), 1, BadTransformation),
        ("B", Persons("k", (("v", Schema(())),)), 1, BadTransformation),
        ("B", "shapeless", 1, BadAction),
    ],
)
def test_a_root_must_make_sense(name: str, shape: Any, total: Any, error: type[ProgramError]) -> None:
    with pytest.raises(error):
        with_root(C, name, shape, total)


def test_a_null_constant_must_have_a_type_of_the_language() -> None:
    with pytest.raises(BadAction):
        step(C, Assign("t", Where(Literal(None, "bool")), ("A",)))  # type: ignore[arg-type]
    with pytest.raises(BadExpression):
        Literal(1, Type.STRING)


class Equal(type):
    """A class that equals the class `like`, and has its hash."""

    like: type = int

    def __hash__(cls) -> int:
        return hash(cls.like)

    def __eq__(cls, other: object) -> bool:
        return other is cls.like or other is cls


class Different(int, metaclass=Equal):
    """A number that no other equals."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class Nothing(Partitioning, metaclass=Equal):
    like = type(None)


def test_a_class_that_equals_another_is_not_it() -> None:
    assert type(Different(1)) == int  # noqa: E721 - that is the attack
    twice = Partitioning(K, (Different(1), Different(1)))
    for attack in (
        Partition(("t", "u"), "A", twice),
        Query("A", Fraction(1), (Count(), Count()), twice),
        Assign("t", PartOf(twice, 0), ("A",)),
    ):
        with pytest.raises(BadExpression, match="Different is not a value of a row"):
            step(C, attack)
    with pytest.raises(BadExpression, match="Different is not a value of a row"):
        Literal.of(Different(1))
    with pytest.raises(BadExpression, match="Different is not a value of a row"):
        LiteralTable(S, ((Different(1),),))
    with pytest.raises(BadAction, match="expected Partitioning or NoneType, not Nothing"):
        step(C, Query("A", Fraction(1), (Count(), Count()), Nothing(K, (0, 1))))


def test_what_stands_behind_the_same_thing_twice_is_looked_at() -> None:
    """The same object is checked once; another one is not taken for it."""
    count = Count()
    check_closed(Query("A", Fraction(1), (count, count, Count())), Action)
    for wrong in (Name("count"), None, (count,)):
        with pytest.raises(BadAction, match=r"Query\.queries"):
            check_closed(Query("A", Fraction(1), (count, count, wrong)), Action)  # type: ignore[arg-type]


def test_an_op_is_told_by_its_letters_and_a_lying_one_is_refused() -> None:
    written = "".join(["qu", "ery"])  # not the very object that the class has
    check_closed(Query("A", Fraction(1), (Count(),), op=written), Action)  # type: ignore[arg-type]
    for wrong in (Name("query"), "count", None):
        with pytest.raises(BadAction, match=r"Query\.op"):
            check_closed(Query("A", Fraction(1), (Count(),), op=wrong), Action)  # type: ignore[arg-type]
