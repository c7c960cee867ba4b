"""Expressions as the program wrote them, and amounts of ε: for plans, prices and error messages."""

from fractions import Fraction

from fpinq.model.epsilon import decimal_down
from fpinq.model.expressions import Column, Expression, Literal
from fpinq.model.notions import Rho
from fpinq.model.visible import visible

_INFIX = {
    "or": ("|", 1),
    "and": ("&", 2),
    "equal": ("==", 4),
    "not_equal": ("!=", 4),
    "less": ("<", 4),
    "less_equal": ("<=", 4),
    "greater": (">", 4),
    "greater_equal": (">=", 4),
    "add": ("+", 5),
    "concat": ("+", 5),
    "subtract": ("-", 5),
    "multiply": ("*", 6),
    "divide": ("/", 6),
    "floor_divide": ("//", 6),
    "modulo": ("%", 6),
}
_PREFIX = {"not": "~", "negate": "-"}
_TIGHTEST = 9
# A comparison needs brackets beside & and |, as it does in the program.
_COMPARISON = 4


def spell(expression: Expression, within: int = 0) -> str:
    """The expression with Python's operators and fpinq's methods."""
    if isinstance(expression, Column):
        return visible(expression.name)
    if isinstance(expression, Literal):
        return "null" if expression.value is None else repr(expression.value)
    operator, arguments = expression.operator, expression.arguments
    if operator in _INFIX:
        sign, strength = _INFIX[operator]
        left, right = (
            spell(argument, strength + (position or strength == _COMPARISON))
            for position, argument in enumerate(arguments)
        )
        text = f"{left} {sign} {right}"
        # & and | bind tighter than comparisons in Python, so they get brackets inside one another.
        return f"({text})" if strength < within or (0 < within < _COMPARISON) else text
    if operator in _PREFIX:
        return _PREFIX[operator] + spell(arguments[0], _TIGHTEST)
    if operator == "abs":
        return f"abs({spell(arguments[0])})"
    if operator == "if_else":
        return f"if_else({', '.join(spell(a) for a in arguments)})"
    subject, *others = arguments
    if operator == "to_float64" and isinstance(subject, Column):
        return visible(subject.name)
    if operator.startswith("to_"):
        return f"{spell(subject, _TIGHTEST)}.cast({operator[3:]!r})"
    inside = ", ".join(spell(a) for a in others)
    return f"{spell(subject, _TIGHTEST)}.{operator}({f'[{inside}]' if operator == 'is_in' else inside})"


def show_down(amount: Fraction) -> str:
    """What is left, exactly where a short decimal is exact, else rounded down."""
    text = decimal_down(amount)
    return text if Fraction(text) == amount else f"{amount} (about {text})"


def show_at(at: Fraction | Rho) -> str:
    """What was asked at: ε = 0.1 or ρ = 0.001."""
    return f"ρ = {show_up(at.amount)}" if isinstance(at, Rho) else f"ε = {show_up(at)}"


def show_delta(delta: Fraction) -> str:
    """A δ, exactly: 1e-10 where that is exact."""
    text = f"{float(delta):.12g}"
    return text if Fraction(text) == delta else str(delta)


def show_up(amount: Fraction) -> str:
    """A price or an ε, exactly where a short decimal is exact, else rounded up."""
    text = decimal_down(amount)
    if Fraction(text) == amount:
        return text
    return f"{amount} (about {decimal_down(amount + Fraction(1, 10**6))})"
