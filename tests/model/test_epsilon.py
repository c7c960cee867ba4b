"""Exact ε and budgets."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.clamps import Clamp
from fpinq.model.closed import check_closed
from fpinq.model.epsilon import LONGEST_EXPONENT, budget, decimal_down, epsilon, rational
from fpinq.model.errors import BadAction, BadEpsilon
from fpinq.model.expressions import Column
from fpinq.model.queries import Rank, Sum


@pytest.mark.parametrize(
    ("given_", "exact"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (1e-5, Fraction(1, 100_000)),
        (0.30000000000000004, Fraction(30000000000000004, 10**17)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.25"), Fraction(1, 4)),
        (Decimal("1E+2"), Fraction(100)),
        ("1/3", Fraction(1, 3)),
        (" 0.5 ", Fraction(1, 2)),
        ("2e-3", Fraction(1, 500)),
        ("3.", Fraction(3)),
        ("999999999999999999", Fraction(999999999999999999)),
    ],
)
def test_a_number_is_taken_exactly(given_: object, exact: Fraction) -> None:
    assert epsilon(given_) == exact


class Liar(float):
    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __ge__ = __gt__ = __eq__ = __le__  # type: ignore[assignment]
    __hash__ = float.__hash__


class LyingInt(int):
    def __lt__(self, other: object) -> bool:
        return False


class LyingFraction(Fraction):
    def __lt__(self, other: object) -> bool:
        return False


class Rational(int):
    """What Fraction takes the parts of, as they are."""

    numerator = denominator = None  # type: ignore[assignment]


def odd(numerator: int, denominator: int) -> Fraction:
    rational = Rational()
    rational.numerator, rational.denominator = numerator, denominator  # type: ignore[assignment]
    return Fraction(rational)


# Each is a Fraction and no subclass of it.
ODD_FRACTIONS = [
    odd(LyingInt(5), 1),
    odd(1, LyingInt(5)),
    odd(5, -1),
    odd(-5, -1),
    odd(2, 4),
    odd(1, 0),
]

REFUSED = [
    *ODD_FRACTIONS,
    True,
    False,
    None,
    [],
    1j,
    b"1",
    0,
    -1,
    -0.1,
    0.0,
    Fraction(-1, 3),
    Decimal("-1"),
    Decimal("0"),
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("Infinity"),
    Decimal("1E+999999"),
    Decimal("1E-999999"),
    Decimal("1." + "3" * 50),
    float("nan"),
    float("inf"),
    float("-inf"),
    1e-320,
    5e-324,
    1e300,
    10**18,
    10**5000,
    Fraction(1, 10**18 + 1),
    "1e999999999",
    "1e-999999999",
    "1e300",
    "1e99",
    "1/0",
    "-1/2",
    "0",
    "0/5",
    "1/-2",
    "nan",
    "inf",
    "-inf",
    "infinity",
    "",
    "one",
    "1_000",
    "0x10",
    "1" * 19,
    "1" * 10_000,
    "0." + "0" * 18 + "1",
    "١",
    Liar(0.5),
    Liar(-0.5),
    LyingInt(-5),
    LyingFraction(-1, 2),
]


@pytest.mark.parametrize("refused", REFUSED, ids=lambda value: type(value).__name__)
def test_what_is_not_an_exact_positive_number_is_refused(refused: object) -> None:
    with pytest.raises(BadEpsilon):
        epsilon(refused)


@pytest.mark.parametrize("number", ODD_FRACTIONS)
def test_a_fraction_is_two_ints_in_lowest_terms_wherever_a_program_says_one(number: Fraction) -> None:
    assert rational(number) is None
    for query in (Rank(Clamp(Column("x"), 0, 9), number), Sum(Clamp(Column("x"), 0, 9, number))):
        with pytest.raises(BadAction, match="a Fraction of two ints"):
            check_closed(query, type(query))


def test_a_budget_may_be_zero_and_an_epsilon_may_not() -> None:
    assert budget(0) == 0
    with pytest.raises(BadEpsilon, match="> 0"):
        epsilon(0)
    with pytest.raises(BadEpsilon, match="≥ 0"):
        budget(-1)


def test_ten_queries_at_a_tenth_fit_a_budget_of_one() -> None:
    assert sum([epsilon(0.1)] * 10) == budget(1)


@given(st.floats(min_value=1e-17, max_value=1e17))
def test_a_float_is_its_shortest_repr(number: float) -> None:
    assert epsilon(number) == Fraction(repr(number))


@given(st.fractions(min_value=0, max_value=10**6), st.integers(1, 12))
def test_a_shown_budget_is_never_more_than_there_is(number: Fraction, places: int) -> None:
    shown = Fraction(decimal_down(number, places))
    assert number - Fraction(1, 10**places) < shown <= number


def test_a_third_is_shown_rounded_down() -> None:
    assert decimal_down(Fraction(1, 3)) == "0.333333"
    assert decimal_down(Fraction(2, 3), 2) == "0.66"
    assert decimal_down(Fraction(5)) == "5"


@pytest.mark.parametrize(
    ("given_", "exact"),
    [
        (-(10**30), Fraction(-(10**30))),
        (0, Fraction(0)),
        (Fraction(-1, 3), Fraction(-1, 3)),
        (0.1, Fraction(1, 10)),
        (-1e300, Fraction(-(10**300))),
        (Decimal("-2.50"), Fraction(-5, 2)),
        (Decimal(f"1E+{LONGEST_EXPONENT}"), Fraction(10**LONGEST_EXPONENT)),
        *(
            (refused, None)
            for refused in (
                *(True, None, "1", 1j, Liar(1), LyingInt(1), LyingFraction(1)),
                *(float("nan"), float("inf"), float("-inf")),
                *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")),
                *(Decimal("1E+999999"), Decimal("1E-999999")),
            )
        ),
    ],
)
def test_a_number_of_any_size_is_taken_exactly_or_not_at_all(given_: object, exact: Fraction | None) -> None:
    assert rational(given_) == exact


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_what_it_shows(number: float) -> None:
    assert rational(number) == Fraction(repr(number))
