"""Featherweight PINQ for Python: private queries over sensitive tables."""

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
from fpinq.client.groups import Groups
from fpinq.client.histograms import BinAnswers
from fpinq.client.histograms import Cdf as cdf  # noqa: N813
from fpinq.client.histograms import FindBounds as bounds  # noqa: N813
from fpinq.client.histograms import Histogram as histogram  # noqa: N813
from fpinq.client.histograms import Ranges as ranges  # noqa: N813
from fpinq.client.joins import all_, first, unique
from fpinq.client.parts import Parts
from fpinq.client.planning import ExpectedError, epsilon_for
from fpinq.client.protect import ReadOffData, protect, public
from fpinq.client.queries import Average as average  # noqa: N813
from fpinq.client.queries import Count as count  # noqa: N813
from fpinq.client.queries import DistinctCount as distinct_count  # noqa: N813
from fpinq.client.queries import Query
from fpinq.client.queries import StandardDeviation as standard_deviation  # noqa: N813
from fpinq.client.queries import Sum as sum  # noqa: N813
from fpinq.client.queries import Variance as variance  # noqa: N813
from fpinq.client.remote import connect
from fpinq.client.shorthand import _, if_else
from fpinq.client.table import Table
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
    TooManyQueries,
)
from fpinq.model.errors import (
    BadData,
    BadEpsilon,
    BadExpression,
    BadPartition,
    BadQuery,
    BadTransformation,
    BudgetExceeded,
    DataChanged,
    EngineError,
    FpinqError,
    KernelViolation,
    LedgerError,
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

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Answers",
    "BadData",
    "BadEpsilon",
    "BadExpression",
    "BadPartition",
    "BadQuery",
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
    "FpinqError",
    "Frozen",
    "Groups",
    "KernelViolation",
    "LedgerCorrupt",
    "LedgerError",
    "LedgerRolledBack",
    "NoLedger",
    "NotAllowed",
    "NotAuthenticated",
    "OtherFormat",
    "OtherVersion",
    "OthersSession",
    "Parts",
    "ProgramError",
    "Query",
    "ReadOffData",
    "RegisteredDifferently",
    "RequestReused",
    "SameData",
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
    "average",
    "bounds",
    "cdf",
    "connect",
    "count",
    "distinct_count",
    "epsilon_for",
    "exponential_mechanism",
    "first",
    "histogram",
    "if_else",
    "median",
    "mode",
    "order_statistic",
    "protect",
    "public",
    "quantile",
    "quantiles",
    "ranges",
    "standard_deviation",
    "sum",
    "unique",
    "variance",
]


def __getattr__(name: str) -> object:
    """fp.Spark and fp.Postgres, which need the extras [spark] and [postgres]: imported when asked for."""
    if name == "Spark":
        from fpinq.engines.spark import Spark

        return Spark
    if name == "Postgres":
        from fpinq.engines.postgres import Postgres

        return Postgres
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
