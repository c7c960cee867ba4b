"""Where Spark may differ from the reference, and by how much.

exp, log and power: Spark calls Java's StrictMath (fdlibm), Python the C library.
Both are within about one unit in the last place of the true value; on 200,000
random arguments each they were never more than one apart. Nothing private
depends on it: the value is still a function of the row alone, and clamps bound
what a row can add (docs/decisions/0031).
"""

from dataclasses import fields, is_dataclass

from fpinq.model.expressions import Apply, Expression

LAST_BIT = 1
_OPERATORS = {"exp", "log", "power"}


def uses_last_bit(expression: Expression) -> bool:
    """Whether the value goes through one of the operators of the gap."""
    if not isinstance(expression, Apply):
        return False
    return expression.operator in _OPERATORS or any(map(uses_last_bit, expression.arguments))


def mentions_last_bit(part: object) -> bool:
    """Whether a plan, a query or anything else made of expressions has one of these operators in it."""
    if isinstance(part, Apply):
        return uses_last_bit(part)
    if is_dataclass(part):
        return any(mentions_last_bit(getattr(part, field.name)) for field in fields(part))
    return isinstance(part, tuple) and any(map(mentions_last_bit, part))
