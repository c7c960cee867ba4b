"""What PostgreSQL takes, in units: measured by bench/work.py, doubled and rounded up (docs/decisions/0118).

Numbers go through decimals where doubles must be told apart, a text is decompressed wherever it is
mentioned, and case is mapped by comparing each character with a table, one after the other.
"""

from fpinq.model.costs import Costs, Times

COSTS = Costs(
    "PostgreSQL",
    {
        "add": Times(20, 1),
        "subtract": Times(120, 1),  # of timestamps, by their epochs
        "multiply": Times(40, 1),
        "divide": Times(40, 1),
        "floor_divide": Times(40, 1),
        "modulo": Times(200, 1),  # of floats, in decimals
        "negate": Times(5, 1),
        "abs": Times(5, 1),
        "sign": Times(6, 1),
        "floor": Times(5, 1),
        "ceil": Times(6, 1),
        "round": Times(5, 1),
        "sqrt": Times(12, 1),
        "exp": Times(16, 1),
        "log": Times(10, 1),
        "power": Times(100, 1),
        "clip": Times(12, 1),
        "equal": Times(6, 12),
        "not_equal": Times(6, 12),
        "less": Times(6, 12),
        "less_equal": Times(6, 12),
        "greater": Times(6, 12),
        "greater_equal": Times(6, 12),
        "and": Times(2, 1),
        "or": Times(2, 1),
        "not": Times(2, 1),
        "if_else": Times(20, 20),
        "is_in": Times(6, 12),
        "is_null": Times(4, 12),
        "fill_null": Times(20, 20),
        "to_bool": Times(2, 25),
        "to_int64": Times(40, 60),
        "to_float64": Times(250, 160),  # a decimal of a thousand digits is one that can be written
        "to_string": Times(10, 1),
        "to_date": Times(40, 250),
        "to_timestamp": Times(40, 250),
        "lower": Times(1, 110),
        "upper": Times(1, 110),
        "strip": Times(25, 4),
        "length": Times(20, 35),
        "substring": Times(25, 20),
        "concat": Times(30, 10),
        "contains": Times(10, 6),
        "starts_with": Times(10, 20),
        "ends_with": Times(20, 25),
        "split": Times(40, 8),
        "year": Times(20, 1),
        "month": Times(20, 1),
        "day": Times(20, 1),
        "weekday": Times(20, 1),
        "hour": Times(20, 1),
    },
    column=Times(1, 16),
    passed=20,
    compared=Times(6, 12),
    keyed=Times(3, 16),
    ordered=Times(3, 16),
    clamped=3,
)
