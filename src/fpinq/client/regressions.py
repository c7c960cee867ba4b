"""Queries of how columns move together: covariances, correlations, linear regressions.

All moments of the columns are one measurement at the full ε (`crossing`). A
record that lacks one of the values counts for nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, Self

from fpinq.client.answers import Answer, Answers, Charged
from fpinq.client.bounds import exact_bounds
from fpinq.client.concentrated import over_size, prepares_at_rho
from fpinq.client.crossing import Again, Bounded, Computed, Crossed, crossed
from fpinq.client.queries import Inquiry, Prepared, column_of, described, divided_by_size, integers
from fpinq.client.rows import BOOL, FLOAT64, INT64, Cell, Symbolic
from fpinq.client.spelling import spell
from fpinq.client.subjects import Subject
from fpinq.client.uncertainty import Expected, Normal
from fpinq.model.epsilon import Epsilon
from fpinq.model.errors import BadQuery, suggest
from fpinq.model.frozen import dataclass
from fpinq.model.notions import Amount, Rho
from fpinq.runtime import Released

if TYPE_CHECKING:
    from fpinq.client.crossing import Array

INTERCEPT = "intercept"
# What was given for a predictor, and what it is called.
Given = tuple[tuple[object, str], ...]
HIDDEN = "noise hides how much it varies: use a larger"
# What is assumed of values before they are asked for: deviations of an eighth of the bounds' width.
EIGHTH = "if deviations are an eighth of the bounds' widths; more if less"
VARIANCE = 1 / 16


# ── two columns ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class OfTwo(Inquiry[Answer]):
    """What is asked of two expressions together."""

    f: object
    g: object
    bounds: object = None

    of_columns = True

    def words(self) -> str:
        return f"{self.what} of {described(self.f)} and {described(self.g)}"

    def column(self) -> str:
        return _of_both(self.what, self.f, self.g)

    def traced(self, subject: Subject) -> Self:
        return replace(self, f=subject.cell(self.f, self.what), g=subject.cell(self.g, self.what))


@dataclass(frozen=True)
class Covariance(OfTwo):
    """The covariance (of the records, divided by their number) of two bounded expressions."""

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        return self.prepare_at(subject, epsilon)

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared[Answer]:
        """At ε or ρ."""
        columns = _pair(subject, self.f, self.g, self.bounds, "covariance")
        together = crossed(columns, (False, False), at)
        unit = together.halves[0] * together.halves[1]

        def compute(measured: "Array") -> "tuple[Array, Array]":
            moments = together.moments(measured)
            return _within(together.covariances(moments)[..., 0, 1, None], 1.0), moments[..., 0, 0] >= 1

        def read(released: Released, charged: Charged) -> Answer:
            value, error, hidden = _computed(together, released, compute)
            return _said(Answer(unit * value[0], at, charged, error(0, unit, -unit, unit)), hidden)

        def expect(size: int | None) -> Expected:
            # The slopes are 4, 0, 0, 0 at worst: where all values are at one bound.
            if isinstance(at, Rho):
                return over_size(4 * unit / sqrt(2 * at.amount), unit, size)
            return divided_by_size(4 * unit * float(1 / at), size, unit)

        return Prepared(together.query, read, expect)


@dataclass(frozen=True)
class Correlation(OfTwo):
    """The correlation of two bounded expressions, between −1 and 1; 0 where noise hides it."""

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[Answer]:
        return self.prepare_at(subject, epsilon)

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared[Answer]:
        """At ε or ρ."""
        columns = _pair(subject, self.f, self.g, self.bounds, "correlation")
        together = crossed(columns, (True, True), at)

        def compute(measured: "Array") -> "tuple[Array, Array]":
            import numpy as np

            moments = together.moments(measured)
            found = together.covariances(moments)
            product = found[..., 0, 0] * found[..., 1, 1]
            exists = (moments[..., 0, 0] >= 1) & (found[..., 0, 0] > 0) & (product > 0)
            quotient = found[..., 0, 1] / np.sqrt(np.where(exists, product, 1.0))
            return _within(quotient[..., None], 1.0), exists

        def read(released: Released, charged: Charged) -> Answer:
            value, error, hidden = _computed(together, released, compute)
            return _said(Answer(value[0], at, charged, error(0, 1.0, -1.0, 1.0)), hidden)

        def expect(size: int | None) -> Expected:
            return _of_an_eighth(together.deviation(together.rows[1, 2]), size)

        return Prepared(together.query, read, expect)


def _of_both(what: str, f: object, g: object) -> str:
    """What a column of answers is called: covariance_age_income."""
    return "_".join(filter(None, (what, column_of(f), column_of(g))))


def _pair(subject: Subject, f: object, g: object, bounds: object, what: str) -> list[Bounded]:
    """Two expressions with their bounds."""
    if bounds is None:
        bounds = (None, None)
    if not isinstance(bounds, tuple | list) or len(bounds) != 2 or not all(map(_is_pair, bounds)):
        raise BadQuery(f"a {what} has bounds for each: bounds=((lower, upper), (lower, upper))")
    cells = subject.cell(f, what), subject.cell(g, what)
    return [(cell, _bounds(subject, cell, each)) for cell, each in zip(cells, bounds, strict=True)]


def _is_pair(bounds: object) -> bool:
    return bounds is None or isinstance(bounds, tuple | list)


def _bounds(subject: Subject, cell: Cell, given: object) -> tuple[Fraction, Fraction]:
    """The bounds of a number that may vary within them."""
    if cell.type not in (BOOL, INT64, FLOAT64):
        raise BadQuery(f"this needs a number, and {spell(cell.tree)} is {cell.type.value}")
    bounds = subject.bounds(cell, given)
    if bounds is None and cell.type is BOOL:
        bounds = (0, 1)
    if bounds is None:
        raise BadQuery(
            f"say the bounds of {spell(cell.tree)}, in bounds=…; they may not depend on the data. "
            "Or once for all with protect(columns={…: fp.Column(bounds=…)})"
        )
    lower, upper = exact_bounds(bounds)
    if lower == upper:
        raise BadQuery(f"the bounds of {spell(cell.tree)} are one point: what cannot vary moves with nothing")
    return lower, upper


# ── regression ───────────────────────────────────────────────────────────────────────


class Terms(Answers):
    """Terms of a regression: by their names, or by the functions that they were given as."""

    def __init__(
        self, answers: Mapping[str, Answer], epsilon: Fraction | Rho, charged: Charged, given: Given = ()
    ) -> None:
        super().__init__(answers, epsilon, charged, ("term",))
        self._given = given

    def __getitem__(self, key: Any) -> Any:
        named = (name for f, name in self._given if f is key)
        return super().__getitem__(next(named, key))


class RegressionAnswers(Terms):
    """A linear regression: the intercept and a coefficient for each predictor, by name."""

    @property
    def intercept(self) -> Answer:
        """What is predicted where all predictors are 0."""
        found: Answer = next(iter(self.values()))
        return found

    @property
    def coefficients(self) -> Terms:
        """What one more of each predictor adds to the prediction, by name."""
        listed = list(self.items())[1:]
        terms = Terms(dict(listed), self.epsilon, self.charged, self._given)
        terms.name = self.name
        return terms

    def predict(self, **values: float) -> float:
        """The prediction for values of all predictors, by name."""
        coefficients = self.coefficients
        if values.keys() != coefficients.keys():
            raise BadQuery(f"a prediction needs a value of each predictor: {', '.join(coefficients)}")
        return float(self.intercept) + sum(float(coefficients[name]) * x for name, x in values.items())


@dataclass(frozen=True)
class Regression(Inquiry[RegressionAnswers]):
    """The linear regression of y on one or more predictors, by least squares.

    Where noise hides how the predictors vary, or that they differ, coefficients
    are drawn towards 0, and their intervals have no end.
    """

    y: object
    x: object
    bounds: object = None

    of_columns = True

    def words(self) -> str:
        named = self.x if isinstance(self.x, Mapping) else map(described, _each(self.x))
        return f"regression of {described(self.y)} on {', '.join(map(str, named))}"

    def column(self) -> str:
        return "coefficient"

    def prepare(self, subject: Subject, epsilon: Epsilon) -> Prepared[RegressionAnswers]:
        return self.prepare_at(subject, epsilon)

    def prepare_at(self, subject: Subject, at: Amount) -> Prepared[RegressionAnswers]:
        """At ε or ρ."""
        named = _predictors(subject, self.x)
        cell = subject.cell(self.y, "regression")
        if any(cell.tree == each.tree for each in named.values()):
            raise BadQuery(f"{spell(cell.tree)} is what is predicted: it is no predictor of itself")
        given = _given(self.bounds, self.y, cell, named, _each(self.x))
        given_as = tuple(zip(_each(self.x), named, strict=True))
        listed = [*named.items(), (None, cell)]
        columns = [(each, _bounds(subject, each, given.get(name))) for name, each in listed]
        together = crossed(columns, [True] * len(named) + [False], at)

        def compute(measured: "Array") -> "tuple[Array, Array]":
            return _least_squares(together, together.moments(measured))

        def read(released: Released, charged: Charged) -> RegressionAnswers:
            measured = together.measured(integers(released))
            again = Again(together, measured, compute)
            values, hidden = _regularised(together, measured)
            answers = {
                name: _said(Answer(value, at, charged, Computed(again, which)), hidden)
                for which, (name, value) in enumerate(zip(_terms(named), values, strict=True))
            }
            return RegressionAnswers(answers, at, charged, given_as)

        def expect(size: int | None) -> Expected:
            slopes = [together.deviation(row) for row in together.rows[-1, 1:-1]]
            unit = "widths of y for each width of a predictor"
            return _of_an_eighth(max(slopes), size, unit)

        return Prepared(together.query, read, expect)


def _terms(named: Mapping[str, Cell]) -> list[str]:
    """What the intercept and the coefficients are called."""
    return [INTERCEPT if INTERCEPT not in named else f"({INTERCEPT})", *named]


def _each(predictors: object) -> list[object]:
    """The predictors as they were given: one, a list, or a dict of them by name."""
    if isinstance(predictors, Mapping):
        return list(predictors.values())
    if isinstance(predictors, list | tuple):
        return list(predictors)
    return [] if predictors is None else [predictors]


def _predictors(subject: Subject, given: object) -> dict[str, Cell]:
    """The predictors by name: as they were given, or spelled out."""
    each = _each(given)
    if not each:
        raise BadQuery("a regression needs one or more predictors: noisy_regression(ε, y, [x, …])")
    named: dict[str, Cell] = {}
    for name, f in zip(given if isinstance(given, Mapping) else each, each, strict=True):
        cell = subject.cell(f, "regression")
        shown = name if isinstance(name, str) else spell(cell.tree)
        if shown in named or any(cell.tree == other.tree for other in named.values()):
            raise BadQuery(f"{shown} is given twice: the predictors must be different from one another")
        named[shown] = cell
    return named


def _given(
    bounds: object, y: object, cell: Cell, named: Mapping[str, Cell], x: Sequence[object]
) -> dict[str | None, object]:
    """The bounds that were given, by the names of the predictors; those of y under None."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise BadQuery('a regression has bounds by name: bounds={"age": (0, 110), …}')
    names: dict[object, str | None] = {name: name for name in named}
    names |= {f: name for f, name in zip(x, named, strict=True) if _is_key(f)}
    names |= {spell(cell.tree): None} | ({y: None} if _is_key(y) else {})
    for name in bounds:
        if name not in names:
            known = [shown for shown in names if isinstance(shown, str)]
            raise BadQuery(
                f"there are bounds of {name!r}, which is in no part of it{suggest(str(name), known)}"
            )
    return {names[name]: each for name, each in bounds.items()}


def _is_key(f: object) -> bool:
    """Whether f can be looked up as it was given: a name, or a function."""
    return not isinstance(f, Symbolic) and (isinstance(f, str) or callable(f))


def _least_squares(
    together: Crossed, moments: "Array", least: "Array | float | None" = None
) -> "tuple[Array, Array]":
    """The intercept and the coefficients, unscaled, of many moments; and of which there are any.

    A variance below the least is taken to be as large, in every direction.
    """
    import numpy as np

    found = together.covariances(moments)
    usable: Array = np.asarray(np.all(np.isfinite(found[:, :-1]), axis=(1, 2)))
    finite = np.where(usable[:, None, None], found, np.eye(found.shape[1]))
    variances, directions = np.linalg.eigh(finite[:, :-1, :-1])
    exists = usable & (moments[:, 0, 0] >= 1) & (variances[:, 0] > 0)
    kept = np.where(variances > 0, variances, 1.0) if least is None else np.maximum(variances, least)
    along = np.einsum("nji,nj->ni", directions, finite[:, :-1, -1]) / kept
    slopes = np.einsum("nij,nj->ni", directions, along)
    return _unscaled(together, slopes, np.where(usable[:, None], moments[:, 0, 1:], 0.0)), exists


def _unscaled(together: Crossed, slopes: "Array", means: "Array") -> "Array":
    """The intercept and the slopes in the units of the columns."""
    import numpy as np

    halves = np.array(together.halves)
    of_columns = slopes * halves[-1] / halves[:-1]
    centres = np.array(together.middles) + halves * means
    intercepts = centres[:, -1] - np.einsum("ni,ni->n", of_columns, centres[:, :-1])
    found: Array = np.concatenate([intercepts[:, None], of_columns], axis=1)
    return found


def _regularised(together: Crossed, measured: "Array") -> tuple[list[float], bool]:
    """The coefficients with no variance below what noise alone may make of one; and whether one was."""
    import numpy as np

    moments = together.moments(measured[None, :])
    number = max(float(moments[0, 0, 0]), 1.0)
    noise = [together.deviation(together.rows[i, i]) for i in range(1, len(together.halves))]
    least = min(max(noise) / number, 1.0)
    possible = np.clip(np.nan_to_num(moments), -1, 1)  # of averages of products of values from −1 to 1
    possible[:, 0, 0] = number
    variances = np.linalg.eigvalsh(together.covariances(possible)[0, :-1, :-1])
    (values,), _ = _least_squares(together, possible, least)
    return [float(value) for value in values], bool(variances[0] < least)


# ── what is computed, and how far it is off ──────────────────────────────────────────


def _computed(
    together: Crossed, released: Released, compute: "Callable[[Array], tuple[Array, Array]]"
) -> tuple[list[float], Callable[..., Computed], bool]:
    """What is computed of what was released, its error, and whether there is no such number; then it is 0."""
    measured = together.measured(integers(released))
    (values,), (exists,) = compute(measured[None, :])
    again = Again(together, measured, compute)

    def error(which: int, *scale_and_bounds: float) -> Computed:
        return Computed(again, which, *scale_and_bounds)

    return [float(v) if exists else 0.0 for v in values], error, not exists


def _within(values: "Array", most: float) -> "Array":
    import numpy as np

    found: Array = np.clip(np.nan_to_num(values), -most, most)
    return found


def _said(answer: Answer, hidden: bool) -> Answer:
    letter = "ρ" if isinstance(answer.epsilon, Rho) else "ε"
    return answer.of_what("", f"{HIDDEN} {letter}") if hidden else answer


def _of_an_eighth(deviation: float, size: int | None, unit: str = "") -> Expected:
    """The error where noise of a deviation is in a covariance, and is divided by a variance."""
    error = deviation / VARIANCE
    if size is None:
        return Expected(None, note=f"about {error:,.4g} divided by the number of records, {EIGHTH}")
    return Expected(Normal(error / size), unit, f"with {size:,} records, {EIGHTH}")


prepares_at_rho[Covariance] = Covariance.prepare_at
prepares_at_rho[Correlation] = Correlation.prepare_at
prepares_at_rho[Regression] = Regression.prepare_at
