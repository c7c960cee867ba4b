"""What Tumult's zCDP adds to the programs of `concentrated.py`, at the same ρ: its own noise, drawn by it.

    python bench/tumult.py [--draws 4000] [--answered 0]

Tumult needs an older Spark than the one that is tested here: run it in an environment of its own,
with `pip install tmlt.analytics`, and without fpinq. A session says which noise a query gets at its share
of ρ, and Tumult's sampler draws it: all of the error of a count is noise. With --answered so many counts
are asked of the session itself, which takes seconds each. Figures are roots of mean squared errors.
"""

import argparse
import math
import os
import sys
import warnings
from fractions import Fraction
from itertools import combinations
from typing import Any

# What (ε, δ) = (1, 10⁻⁹) implies, rounded down, as fp.approximate(epsilon=1, delta="1e-9") says it.
RHO = Fraction(149728222, 10**10)
COLUMNS, VALUES, RECORDS, COUNTS = 10, 4, 2_000, 100


def session(spark: Any, rows: list[dict[str, int]]) -> Any:
    """The rows with a budget of ρ, a row at a time."""
    from tmlt.analytics import AddOneRow, Session

    return Session.from_dataframe(
        privacy_budget=share(1),
        source_id="rows",
        dataframe=spark.createDataFrame(rows),
        protected_change=AddOneRow(),
    )


def share(of: int) -> Any:
    """An equal share of ρ, exactly."""
    from sympy import Rational
    from tmlt.analytics import RhoZCDPBudget
    from tmlt.core.utils.exact_number import ExactNumber

    return RhoZCDPBudget(ExactNumber(Rational(RHO.numerator, RHO.denominator * of)))


def root(errors: list[float]) -> float:
    """The root of the mean of squares."""
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def told(name: str, asked: Any, query: Any, of: int, draws: int) -> None:
    """The noise of a query at its share, and what it comes to."""
    from tmlt.core.random.discrete_gaussian import sample_dgauss

    (noise,) = asked._noise_info(query, share(of))
    kind, variance = noise["noise_mechanism"].name, Fraction(noise["noise_parameter"])
    drawn = root([float(sample_dgauss(variance)) for _ in range(draws)])
    own = float(of / (2 * RHO))
    print(f"{name:<38}{kind}  σ² = {float(variance):,.1f}, 1/(2ρ) = {own:,.1f}  RMSE {drawn:.1f}")


def main() -> None:
    """Every figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4_000)
    parser.add_argument("--answered", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession
    from tmlt.analytics import KeySet, QueryBuilder

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", 1).getOrCreate()
    ages = session(spark, [{"a": i} for i in range(RECORDS)])
    count = QueryBuilder("rows").filter(f"a < {RECORDS // 2}").count()
    told("100 adaptive counts", ages, count, COUNTS, arguments.draws)
    names = [f"c{i}" for i in range(COLUMNS)]
    table = session(spark, [dict.fromkeys(names, i % VALUES) for i in range(RECORDS)])
    pairs = list(combinations(names, 2))
    keys = KeySet.from_dict({name: list(range(VALUES)) for name in pairs[0]})
    marginal = QueryBuilder("rows").groupby(keys).count()
    told("all 2-way marginals of 10 columns", table, marginal, len(pairs), arguments.draws)
    errors = []
    for _ in range(arguments.answered):
        ((value,),) = ages.evaluate(count, privacy_budget=share(COUNTS)).collect()
        errors.append(float(value - RECORDS // 2))
    if errors:
        print(f"{len(errors)} counts, answered: RMSE {root(errors):.1f}")


if __name__ == "__main__":
    main()
