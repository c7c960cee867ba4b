"""What people try first who come from other libraries, and what to write instead."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from fpinq.model.errors import suggest

_TRANSFORMATIONS = {
    "filter": "where",
    "map": "select",
    "mutate": "with_columns",
    "assign": "with_columns",
    "flat_map": "select_many",
    "explode": "select_many",
    "groupby": "group_by",
    "limit": "take",
    "skip": "except_ (table.except_(table.take(k), bag=True))",
    "merge": "join",
    "subtract": "except_",
    "difference": "except_",
    "drop_duplicates": "distinct",
    "columns": "schema",
    "dtypes": "schema",
    "agg": "query (table.query(ε, fp.average(f), by=…, keys=[…]))",
    "aggregate": "query (table.query(ε, fp.average(f), by=…, keys=[…]))",
    "crosstab": "query (table.query(ε, fp.count(), by=[…]).pivot())",
    "apply": "select, or with_columns",
    "transform": "with_columns",
    "drop": 'select (table.select("age", "edu") keeps these columns)',
    "dropna": "where (table.where(lambda x: ~x.age.is_null()))",
    "fillna": 'with_columns (table.with_columns(lambda x: {"age": x.age.fill_null(0)}))',
    "fill_null": 'with_columns (table.with_columns(lambda x: {"age": x.age.fill_null(0)}))',
    "isin": "where (table.where(lambda x: x.edu.is_in([9, 10])))",
    "plot": "query or noisy_histogram (their answers have .plot())",
    "pivot_table": "query (table.query(ε, fp.count(), by=[…]).pivot())",
}

# With or without noisy_ before it.
_STATISTICS = {
    "count": "noisy_count",
    "size": "noisy_count",
    "shape": "noisy_count",
    "sum": "noisy_sum",
    "total": "noisy_sum",
    "mean": "noisy_average",
    "avg": "noisy_average",
    "average": "noisy_average",
    "var": "noisy_variance",
    "variance": "noisy_variance",
    "std": "noisy_standard_deviation",
    "stddev": "noisy_standard_deviation",
    "stdev": "noisy_standard_deviation",
    "deviation": "noisy_standard_deviation",
    "sd": "noisy_standard_deviation",
    "standard_deviation": "noisy_standard_deviation",
    "median": "noisy_median",
    "quantile": "noisy_quantile",
    "quantiles": "noisy_quantile",
    "percentile": "noisy_quantile",
    "min": "noisy_min, an outer quantile, since the least value is one record's own",
    "max": "noisy_max, an outer quantile, since the largest value is one record's own",
    "minimum": "noisy_min",
    "maximum": "noisy_max",
    "cov": "noisy_covariance",
    "covariance": "noisy_covariance",
    "corr": "noisy_correlation",
    "correlation": "noisy_correlation",
    "ols": "noisy_regression",
    "lm": "noisy_regression",
    "fit": "noisy_regression",
    "linear_regression": "noisy_regression",
    "regression": "noisy_regression",
    "proportion": "noisy_proportion",
    "share": "noisy_proportion",
    "top": "noisy_top",
    "nlargest": "noisy_top",
    "top_k": "noisy_top",
    "mode": "noisy_mode",
    "nunique": "noisy_distinct_count",
    "count_distinct": "noisy_distinct_count",
    "unique": "distinct, or noisy_distinct_count",
    "hist": "noisy_histogram",
    "ecdf": "noisy_cdf",
    "histogram": "noisy_histogram",
    "value_counts": "noisy_histogram (noisy_histogram(ε, f, keys=[…]))",
    "cdf": "noisy_cdf",
    "describe": "noisy_average, noisy_standard_deviation and noisy_quantile",
}

# What shows records.
_RECORDS = {
    "head",
    "tail",
    "show",
    "sample",
    "collect",
    "first",
    "last",
    "iloc",
    "loc",
    "iterrows",
    "itertuples",
    "rows",
    "row",
    "values",
    "to_pandas",
    "to_polars",
    "to_arrow",
    "to_dict",
    "to_csv",
    "to_numpy",
    "fetchall",
    "fetchone",
    "glimpse",
    "sort_values",
    "order_by",
    "sort",
}


def instead(name: str, known: Iterable[str]) -> str:
    """What to write instead of a method that a table has not, or nothing."""
    stem = name.removeprefix("noisy_")
    if name in _TRANSFORMATIONS:
        return f"; use {_TRANSFORMATIONS[name]}"
    if stem in _STATISTICS:
        return f"; use {_STATISTICS[stem]}"
    if name in _RECORDS:
        return (
            ": its records are private. Ask for a statistic, such as table.noisy_average(ε, f); "
            "table.schema shows the columns"
        )
    return suggest(name, known)


def misplaced(epsilon: object) -> str:
    """“ε comes first …” if something else was given in its place, else nothing."""
    if _meant_as_epsilon(epsilon):
        return ""
    return 'ε comes first, as in table.noisy_average(0.1, "age"); '


def _meant_as_epsilon(given: object) -> bool:
    if isinstance(given, str):
        return given.strip()[:1] in set("0123456789+-.") and bool(given.strip())
    return given is None or isinstance(given, int | float | Fraction | Decimal)
