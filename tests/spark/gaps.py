"""Where Spark may differ from the reference, and by how much.

exp, log and power: Spark calls Java's StrictMath (fdlibm), Python the C library.
Both are within one unit in the last place of the true value, so within two of
each other. Nothing private depends on it: the value is still a function of the
row alone, and clamps bound what a row can add (docs/decisions/0031).
"""

from fpinq.model.expressions import Apply, Expression

LAST_BIT = 2
_OPERATORS = {"exp", "log", "power"}


def uses_last_bit(expression: Expression) -> bool:
    """Whether the value goes through one of the operators of the gap."""
    if not isinstance(expression, Apply):
        return False
    return expression.operator in _OPERATORS or any(map(uses_last_bit, expression.arguments))
