"""What the front end names of the parser's syntax: every node with the arguments that it may have.

A statement is walked once against this table before anything is made of it, so that what the
parser understands and we do not (a sample, a lateral join, a frame of a window) is refused and
never left out in silence.
"""

from sqlglot import exp

_UNARY = ("this",)
_BINARY = ("this", "expression")

# Flags that the parser adds of its own, and that say nothing more.
_FLAGS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Count: ("big_int",),
    exp.Div: ("typed", "safe"),
    exp.DateDiff: ("date_part_boundary",),
    exp.TryCast: ("safe",),
    exp.Coalesce: ("is_nvl", "is_null"),
    exp.Concat: ("safe", "coalesce"),
    exp.DPipe: ("safe",),
    exp.Trim: ("position",),
}

NODES: dict[type[exp.Expr], tuple[str, ...]] = {
    # statements
    exp.Select: (
        "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_",
        "distinct",
    ),
    exp.Union: ("this", "expression", "distinct", "with_", "order", "limit", "offset"),
    exp.Intersect: ("this", "expression", "distinct", "with_", "order", "limit", "offset"),
    exp.Except: ("this", "expression", "distinct", "with_", "order", "limit", "offset"),
    exp.With: ("expressions",),
    exp.CTE: ("this", "alias"),
    exp.From: _UNARY,
    exp.Table: ("this", "alias", "db"),
    exp.TableAlias: ("this", "columns"),
    exp.Subquery: ("this", "alias"),
    exp.Values: ("expressions", "alias"),
    exp.Tuple: ("expressions",),
    exp.Join: ("this", "on", "using", "side", "kind"),
    exp.Where: _UNARY,
    exp.Group: ("expressions", "rollup", "cube", "grouping_sets", "all"),
    exp.Rollup: ("expressions",),
    exp.Cube: ("expressions",),
    exp.GroupingSets: ("expressions",),
    exp.Having: _UNARY,
    exp.Order: ("expressions",),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Limit: ("expression",),
    exp.Offset: ("expression",),
    exp.Distinct: ("expressions",),
    exp.Alias: ("this", "alias"),
    exp.Star: (),
    # values
    exp.Identifier: ("this", "quoted"),
    exp.Column: ("this", "table"),
    exp.Literal: ("this", "is_string"),
    exp.Boolean: _UNARY,
    exp.Null: (),
    exp.Paren: _UNARY,
    exp.Interval: ("this", "unit"),
    exp.Var: _UNARY,
    exp.DataType: ("this", "nested", "expressions"),
    exp.DataTypeParam: _UNARY,
    # operators
    exp.And: _BINARY, exp.Or: _BINARY, exp.Not: _UNARY,
    exp.EQ: _BINARY, exp.NEQ: _BINARY, exp.LT: _BINARY, exp.LTE: _BINARY, exp.GT: _BINARY, exp.GTE: _BINARY,
    exp.NullSafeEQ: _BINARY, exp.NullSafeNEQ: _BINARY, exp.Is: _BINARY,
    exp.In: ("this", "expressions", "query"),
    exp.Exists: _UNARY,
    exp.Between: ("this", "low", "high"),
    exp.Like: (*_BINARY, "negate"), exp.ILike: (*_BINARY, "negate"), exp.Escape: _BINARY,
    exp.Add: _BINARY, exp.Sub: _BINARY, exp.Mul: _BINARY, exp.Div: _BINARY, exp.IntDiv: _BINARY,
    exp.Mod: _BINARY, exp.Pow: _BINARY, exp.Neg: _UNARY, exp.DPipe: _BINARY,
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to"),
    # functions of a row
    exp.Abs: _UNARY, exp.Sign: _UNARY, exp.Floor: _UNARY, exp.Ceil: _UNARY, exp.Sqrt: _UNARY, exp.Exp: _UNARY,
    exp.Ln: _UNARY, exp.Trunc: _UNARY, exp.Log: _BINARY,
    exp.Round: ("this", "decimals"),
    exp.Coalesce: ("this", "expressions"),
    exp.Nullif: _BINARY,
    exp.Greatest: ("this", "expressions", "ignore_nulls"),
    exp.Least: ("this", "expressions", "ignore_nulls"),
    exp.Lower: _UNARY, exp.Upper: _UNARY, exp.Length: _UNARY,
    exp.Trim: _UNARY,
    exp.Substring: ("this", "start", "length"),
    exp.Left: _BINARY,
    exp.Contains: _BINARY, exp.StartsWith: _BINARY, exp.EndsWith: _BINARY,
    exp.Concat: ("expressions",),
    exp.Extract: _BINARY,
    exp.Year: _UNARY, exp.Month: _UNARY, exp.Day: _UNARY, exp.Quarter: _UNARY, exp.Hour: _UNARY,
    exp.DayOfWeek: _UNARY, exp.DayOfWeekIso: _UNARY, exp.DayOfMonth: _UNARY,
    exp.DateDiff: ("this", "expression", "unit"),
    exp.Anonymous: ("this", "expressions"),
    # aggregates
    exp.Count: _UNARY, exp.CountIf: _UNARY, exp.Sum: _UNARY, exp.Avg: _UNARY, exp.Min: _UNARY,
    exp.Max: _UNARY, exp.Median: _UNARY, exp.Mode: _UNARY,
    exp.Variance: _UNARY, exp.VariancePop: _UNARY, exp.Stddev: _UNARY, exp.StddevPop: _UNARY,
    exp.StddevSamp: _UNARY,
    exp.Quantile: ("this", "quantile"),
    exp.ApproxQuantile: ("this", "quantile"),
    exp.PercentileCont: _BINARY,
    exp.PercentileDisc: _BINARY,
    exp.WithinGroup: _BINARY,
    exp.Corr: _BINARY, exp.CovarPop: _BINARY, exp.CovarSamp: _BINARY,
    exp.RegrSlope: _BINARY, exp.RegrIntercept: _BINARY,
    exp.Filter: _BINARY,
    exp.Grouping: ("expressions",),
}  # fmt: skip

ALLOWED = {node: frozenset(arguments) | set(_FLAGS.get(node, ())) for node, arguments in NODES.items()}


def function_names() -> list[str]:
    """The functions and aggregates by their names in SQL, for completion."""
    functions = [node for node in NODES if issubclass(node, exp.Func) and node not in _SPELLED_OTHERWISE]
    return sorted({name for node in functions for name in node.sql_names()} | {"CLAMP"})


_SPELLED_OTHERWISE = {exp.Case, exp.And, exp.Or, exp.Anonymous, exp.Cast, exp.TryCast, exp.If}

# What is refused for a reason of its own, with what to do instead.
REASONS: dict[type[exp.Expr], str] = {
    exp.Window: "a window function gives every record a value that depends on other records, so one record "
    "may change them all: GROUP BY in a sub-query is the transformation that stays private",
    exp.TableSample: "a sample is drawn by the engine, and its randomness would be part of the answer: "
    "leave it out, DP answers are of all records",
    exp.Placeholder: "parameters are no part of the text here: write the value itself",
    exp.Parameter: "parameters are no part of the text here: write the value itself",
    exp.Lateral: "a lateral join runs a query for every record: join on equal keys instead",
    exp.Pivot: "write a GROUP BY and pivot the answers: .pivot()",
    exp.RegexpLike: "regular expressions have no bounded cost: use LIKE with % at its ends",
    exp.Rand: "a random number per record would make the same question two questions: leave it out",
    exp.CurrentDate: "the clock is no part of a statement: write the date, DATE '2024-01-31'",
    exp.CurrentTimestamp: "the clock is no part of a statement: write it, TIMESTAMP '2024-01-31 12:00:00'",
    exp.ReadCSV: "files are protected by their owner, fp.protect(…): a statement names tables only",
}
