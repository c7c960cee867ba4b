"""The threshold of a stability histogram meets the proof's condition, and the next lower one does not."""

from fractions import Fraction
from itertools import product

from fpinq.model.enclosure import exp_negative, fractions
from fpinq.noise.laplace import DiscreteLaplace
from fpinq.noise.stability import StabilityHistogram
from proof.conftest import Coq

BITS = 40

Case = tuple[Fraction, Fraction, int, int]

# ε, δ for each unit of distance, how many records of a table one can change, keys of a record.
CASES: list[Case] = [
    (Fraction(epsilon), Fraction(delta), distance, most)
    for epsilon, delta, distance, most in product(("1", "4"), ("1e-9", "1e-6", "1/100"), (1, 2, 5), (1, 3))
]


def histogram(case: Case) -> StabilityHistogram:
    epsilon, delta, distance, most = case
    return StabilityHistogram(DiscreteLaplace(most / epsilon), delta / most, distance)


def term(case: Case, threshold: int) -> str:
    """The condition, with a bound of e^(−ε/most) from above."""
    epsilon, delta, distance, most = case
    _, above = fractions(exp_negative(epsilon / most, BITS), BITS)
    bound = f"({above.numerator}#{above.denominator})"
    spent = f"({delta.numerator}#{delta.denominator})"
    return f"ComputeBooks.show_safe {bound} {most} {threshold} {spent} {distance}"


def test_the_threshold_is_safe_and_no_lower_one_is(coq: Coq) -> None:
    thresholds = [histogram(case).threshold for case in CASES]
    found = coq([term(case, t) for case, t in zip(CASES, thresholds, strict=True)])
    assert found == ["safe"] * len(CASES)
    lower = coq([term(case, t - 1) for case, t in zip(CASES, thresholds, strict=True)])
    assert lower == ["refused"] * len(CASES)


def refused_if_lower(coq: Coq, wrong: dict[Case, int]) -> None:
    """The proof tells wrong thresholds from right ones, wherever they are lower; in ten cases at least."""
    lower = [t < histogram(case).threshold for case, t in wrong.items()]
    assert sum(lower) >= 10
    found = coq([term(case, t) for case, t in wrong.items()])
    assert found == ["refused" if is_lower else "safe" for is_lower in lower]


def test_a_threshold_for_one_record_alone_is_refused_where_one_changes_several(coq: Coq) -> None:
    several = [case for case in CASES if case[2] > 1]
    refused_if_lower(coq, {case: histogram((*case[:2], 1, case[3])).threshold for case in several})


def test_a_threshold_that_forgets_how_many_keys_a_record_has_is_refused(coq: Coq) -> None:
    spread = [case for case in CASES if case[3] > 1]
    forgetful = {
        case: StabilityHistogram(DiscreteLaplace(case[3] / case[0]), case[1], case[2]).threshold
        for case in spread
    }
    refused_if_lower(coq, forgetful)
