"""The smallest and the largest value, as far as they can be private: outer quantiles.

One record can be the smallest by far, so nothing that is private is near it. What
is asked for instead is the value of a record that is a few away from the end: few,
but enough to hide each of them. How many follows from ε and the bounds, not from
the data.
"""

from fractions import Fraction
from math import ceil, exp, log

from fpinq.client.answers import Answer, Charged
from fpinq.client.bounds import clamp
from fpinq.client.concentrated import chosen_at_rho, prepares_at_rho
from fpinq.client.queries import Inquiry, Prepared, integer, on_grid
from fpinq.client.rows import plain
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import ChoiceLoss, Expected, Number
from fpinq.model import queries as primitives
from fpinq.model.clamps import Clamp
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery
from fpinq.model.expressions import Apply
from fpinq.model.frozen import dataclass
from fpinq.runtime import Released

# With this probability the extreme lies beyond the answer, or is it.
SURE = 0.95
# Floats are at 2^15 to 2^16 grid points: the fewer there are, the nearer to the end is the record.
EXTREME_WIDTH_BITS = 16


@dataclass(frozen=True)
class Minimum(Inquiry[Answer]):
    """The value of about the beyond-th record from below: the nearest to a minimum that is private.

    By itself beyond is what it takes for the minimum to be no larger, with 95 %.
    With fewer records than that the answer may be anywhere above them.
    """

    of: object = None
    bounds: object = None
    beyond: object = None

    sign = 1
    side = "from below"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        cell = subject.cell(self.of, "minimum")
        bounds = subject.bounds(cell, self.bounds)
        clamped = clamp(cell, bounds, width_bits=EXTREME_WIDTH_BITS)
        if self.sign < 0:
            clamped = _negated(clamped)
        number = _beyond(self.beyond, clamped, epsilon)
        loss = ChoiceLoss(clamped.width + 1, epsilon / 2)
        lower, upper = sorted(self.sign * on_grid(end, clamped) for end in (clamped.lower, clamped.upper))
        outermost = Outermost(lower, upper, self.sign, _sure(number, loss))

        def read(released: Released, charged: Charged) -> Answer:
            value = self.sign * on_grid(integer(released), clamped)
            answer = Answer(value, epsilon, charged, outermost)
            return answer.of_what(f"(about record {number:,} {self.side})", "an outer quantile")

        def expect(size: int | None) -> Expected:
            return Expected(loss, "records", f"around record {number:,} {self.side}")

        return Prepared(primitives.Depth(clamped, number), read, expect)


class Maximum(Minimum):
    """The value of about the beyond-th record from above: the nearest to a maximum that is private."""

    sign = -1
    side = "from above"


def _negated(of: Clamp) -> Clamp:
    """What is as far above as the other is below."""
    return Clamp(Apply("negate", (of.value,)), -of.upper, -of.lower, of.step)


def _beyond(given: object, clamped: Clamp, epsilon: Epsilon) -> int:
    if given is None:
        return ceil(2 * (log(clamped.width + 1) - log(1 - SURE)) / float(epsilon))
    number = plain(given)
    if type(number) is not int or number < 1:
        raise BadQuery("beyond is which record, counted from the end: a whole number, 1 or more")
    return number


def _sure(number: int, loss: ChoiceLoss) -> float:
    """The probability, at least, that the extreme is no farther inside than the answer."""
    return 1 - loss.candidates * exp(-float(loss.rate) * number)


@dataclass(frozen=True)
class Outermost:
    """The extreme itself is beyond the answer, up to the bounds: so much is sure."""

    lower: float | int
    upper: float | int
    sign: int
    sure: float
    approximate = False

    def standard_error(self) -> None:
        """Unknown: how far the extreme is depends on one record."""
        return

    def interval(self, value: Number, confidence: Fraction) -> tuple[Number, Number]:
        """From the bound to the answer, where that is sure enough."""
        if confidence > self.sure:
            return self.lower, self.upper
        return (self.lower, value) if self.sign > 0 else (value, self.upper)


prepares_at_rho[Minimum] = prepares_at_rho[Maximum] = chosen_at_rho
