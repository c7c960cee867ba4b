"""Featherweight PINQ for Python: private queries over sensitive tables.

The public names. What each of them names is imported when it is first asked for.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fpinq.client.answers import Answer, Answers
    from fpinq.client.bounds import Column
    from fpinq.client.budgets import Budget

    # Queries are classes, spelled as functions: fp.count(), fp.average(f, bounds=…).
    from fpinq.client.choices import ExponentialMechanism as exponential_mechanism  # noqa: N813
    from fpinq.client.choices import Median as median  # noqa: N813
    from fpinq.client.choices import Mode as mode  # noqa: N813
    from fpinq.client.choices import OrderStatistic as order_statistic  # noqa: N813
    from fpinq.client.choices import Quantile as quantile  # noqa: N813
    from fpinq.client.choices import Quantiles as quantiles  # noqa: N813
    from fpinq.client.counting import Proportion as proportion  # noqa: N813
    from fpinq.client.counting import Top as top  # noqa: N813
    from fpinq.client.discovery import FoundAnswers, discover, domain
    from fpinq.client.extremes import Maximum as maximum  # noqa: N813
    from fpinq.client.extremes import Minimum as minimum  # noqa: N813
    from fpinq.client.groups import Groups
    from fpinq.client.histograms import BinAnswers
    from fpinq.client.histograms import Cdf as cdf  # noqa: N813
    from fpinq.client.histograms import FindBounds as bounds  # noqa: N813
    from fpinq.client.histograms import Histogram as histogram  # noqa: N813
    from fpinq.client.histograms import Ranges as ranges  # noqa: N813
    from fpinq.client.joins import all_, first, unique
    from fpinq.client.notions import approximate, rho
    from fpinq.client.parts import Parts
    from fpinq.client.planning import ExpectedError, epsilon_for, rho_for
    from fpinq.client.protect import ReadOffData, protect, public
    from fpinq.client.queries import Average as average  # noqa: N813
    from fpinq.client.queries import Count as count  # noqa: N813
    from fpinq.client.queries import DistinctCount as distinct_count  # noqa: N813
    from fpinq.client.queries import Inquiry as Query
    from fpinq.client.queries import StandardDeviation as standard_deviation  # noqa: N813
    from fpinq.client.queries import Sum as sum  # noqa: N813
    from fpinq.client.queries import Variance as variance  # noqa: N813
    from fpinq.client.regressions import Correlation as correlation  # noqa: N813
    from fpinq.client.regressions import Covariance as covariance  # noqa: N813
    from fpinq.client.regressions import Regression as regression  # noqa: N813
    from fpinq.client.regressions import RegressionAnswers
    from fpinq.client.remote import connect
    from fpinq.client.several import several
    from fpinq.client.shorthand import _, if_else
    from fpinq.client.sql import sql
    from fpinq.client.table import Table
    from fpinq.client.thresholds import ExpectedKeys
    from fpinq.client.workloads import compare, marginal, marginals, workload

    # Both need extras, [postgres] and [spark], so they are no part of `from fpinq import *`.
    from fpinq.engines.postgres import Postgres as Postgres
    from fpinq.engines.spark import Spark as Spark
    from fpinq.engines.text import Dialect
    from fpinq.ledger.errors import (
        BadWire,
        Frozen,
        LedgerCorrupt,
        LedgerRolledBack,
        NoLedger,
        OtherFormat,
        OthersSession,
        RegisteredDifferently,
        RequestReused,
        SameData,
        SessionTooLarge,
        TooManyQueries,
    )
    from fpinq.model.errors import (
        BadData,
        BadEpsilon,
        BadExpression,
        BadPartition,
        BadQuery,
        BadSQL,
        BadTransformation,
        BudgetExceeded,
        DataChanged,
        EngineError,
        FpinqError,
        KernelViolation,
        LedgerError,
        NoDelta,
        NotConcentrated,
        ProgramError,
        UnboundedStability,
        UnfitEngine,
        UnknownColumn,
        UnknownTable,
        WrongArity,
    )
    from fpinq.runtime.refusals import (
        NotAllowed,
        NotAuthenticated,
        OtherVersion,
        TooLarge,
        TooManyRequests,
        Unavailable,
        UnknownDataSet,
    )

__version__ = "0.2.0"

__all__ = [
    "Answer",
    "Answers",
    "BadData",
    "BadEpsilon",
    "BadExpression",
    "BadPartition",
    "BadQuery",
    "BadSQL",
    "BadTransformation",
    "BadWire",
    "BinAnswers",
    "Budget",
    "BudgetExceeded",
    "Column",
    "DataChanged",
    "Dialect",
    "EngineError",
    "ExpectedError",
    "ExpectedKeys",
    "FoundAnswers",
    "FpinqError",
    "Frozen",
    "Groups",
    "KernelViolation",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerRolledBack",
    "NoDelta",
    "NoLedger",
    "NotAllowed",
    "NotAuthenticated",
    "NotConcentrated",
    "OtherFormat",
    "OtherVersion",
    "OthersSession",
    "Parts",
    "ProgramError",
    "Query",
    "ReadOffData",
    "RegisteredDifferently",
    "RegressionAnswers",
    "RequestReused",
    "SameData",
    "SessionTooLarge",
    "Table",
    "TooLarge",
    "TooManyQueries",
    "TooManyRequests",
    "Unavailable",
    "UnboundedStability",
    "UnfitEngine",
    "UnknownColumn",
    "UnknownDataSet",
    "UnknownTable",
    "WrongArity",
    "_",
    "all_",
    "approximate",
    "average",
    "bounds",
    "cdf",
    "compare",
    "connect",
    "correlation",
    "count",
    "covariance",
    "discover",
    "distinct_count",
    "domain",
    "epsilon_for",
    "exponential_mechanism",
    "first",
    "histogram",
    "if_else",
    "marginal",
    "marginals",
    "maximum",
    "median",
    "minimum",
    "mode",
    "order_statistic",
    "proportion",
    "protect",
    "public",
    "quantile",
    "quantiles",
    "ranges",
    "regression",
    "rho",
    "rho_for",
    "several",
    "sql",
    "standard_deviation",
    "sum",
    "top",
    "unique",
    "variance",
    "workload",
]

# Where they are: the imports above, which only type checkers follow.
_PLACES = {
    "fpinq.client.answers": (
        "Answer",
        "Answers",
    ),
    "fpinq.client.bounds": ("Column",),
    "fpinq.client.budgets": ("Budget",),
    "fpinq.client.choices": (
        "ExponentialMechanism as exponential_mechanism",
        "Median as median",
        "Mode as mode",
        "OrderStatistic as order_statistic",
        "Quantile as quantile",
        "Quantiles as quantiles",
    ),
    "fpinq.client.counting": (
        "Proportion as proportion",
        "Top as top",
    ),
    "fpinq.client.discovery": (
        "FoundAnswers",
        "discover",
        "domain",
    ),
    "fpinq.client.extremes": (
        "Maximum as maximum",
        "Minimum as minimum",
    ),
    "fpinq.client.groups": ("Groups",),
    "fpinq.client.histograms": (
        "BinAnswers",
        "Cdf as cdf",
        "FindBounds as bounds",
        "Histogram as histogram",
        "Ranges as ranges",
    ),
    "fpinq.client.joins": (
        "all_",
        "first",
        "unique",
    ),
    "fpinq.client.notions": (
        "approximate",
        "rho",
    ),
    "fpinq.client.parts": ("Parts",),
    "fpinq.client.planning": (
        "ExpectedError",
        "epsilon_for",
        "rho_for",
    ),
    "fpinq.client.protect": (
        "ReadOffData",
        "protect",
        "public",
    ),
    "fpinq.client.queries": (
        "Average as average",
        "Count as count",
        "DistinctCount as distinct_count",
        "Inquiry as Query",
        "StandardDeviation as standard_deviation",
        "Sum as sum",
        "Variance as variance",
    ),
    "fpinq.client.regressions": (
        "Correlation as correlation",
        "Covariance as covariance",
        "Regression as regression",
        "RegressionAnswers",
    ),
    "fpinq.client.remote": ("connect",),
    "fpinq.client.several": ("several",),
    "fpinq.client.shorthand": (
        "_",
        "if_else",
    ),
    "fpinq.client.sql": ("sql",),
    "fpinq.client.table": ("Table",),
    "fpinq.client.thresholds": ("ExpectedKeys",),
    "fpinq.client.workloads": (
        "compare",
        "marginal",
        "marginals",
        "workload",
    ),
    "fpinq.engines.postgres": ("Postgres",),
    "fpinq.engines.spark": ("Spark",),
    "fpinq.engines.text": ("Dialect",),
    "fpinq.ledger.errors": (
        "BadWire",
        "Frozen",
        "LedgerCorrupt",
        "LedgerRolledBack",
        "NoLedger",
        "OtherFormat",
        "OthersSession",
        "RegisteredDifferently",
        "RequestReused",
        "SameData",
        "SessionTooLarge",
        "TooManyQueries",
    ),
    "fpinq.model.errors": (
        "BadData",
        "BadEpsilon",
        "BadExpression",
        "BadPartition",
        "BadQuery",
        "BadSQL",
        "BadTransformation",
        "BudgetExceeded",
        "DataChanged",
        "EngineError",
        "FpinqError",
        "KernelViolation",
        "LedgerError",
        "NoDelta",
        "NotConcentrated",
        "ProgramError",
        "UnboundedStability",
        "UnfitEngine",
        "UnknownColumn",
        "UnknownTable",
        "WrongArity",
    ),
    "fpinq.runtime.refusals": (
        "NotAllowed",
        "NotAuthenticated",
        "OtherVersion",
        "TooLarge",
        "TooManyRequests",
        "Unavailable",
        "UnknownDataSet",
    ),
}
_PLACE_OF = {
    name or there: (module, there)
    for module, names in _PLACES.items()
    for there, _as, name in (spelled.partition(" as ") for spelled in names)
}


def __getattr__(name: str) -> object:
    """A public name, from where it is; from then on a name of this module like any other."""
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _PLACE_OF[name]
    found = globals()[name] = getattr(import_module(module), there)
    return found


class _Package(ModuleType):
    """This module, in which `sql` is the function: importing the folder of that name does not hide it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "sql" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
