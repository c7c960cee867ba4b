"""fpinq beside its peers: how far answers are off at the same ε, and how long a question takes.

    python bench/peers.py                       fpinq alone, on made-up ages
    python bench/peers.py --install             each peer in an environment of its own, in build/peers
    python bench/peers.py --data adult.csv      the ages of a file

Each system runs in its own environment, one after the other on the same rows, and is asked the usual way of
its documentation; a question that it does not have is left out. No peer is a dependency of the project: what
cannot be installed is said. Ages are between 0 and 100, which is public; the neighbour of a table has one row
more or fewer, unless a note says otherwise. Which questions are wanted is known when a system gets ready.
"""

import json
import random
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from csv import DictReader
from importlib import metadata
from pathlib import Path
from statistics import fmean, median
from typing import Any

EPSILON = 0.1
LEAST, LARGEST, WIDTH = 0, 100, 10
ROWS, MANY = 10_000, 1_000_000
QUESTIONS = ("count", "sum", "average", "median", "variance", "histogram")
WHERE = Path("build/peers")

Asked = dict[str, Callable[[], Any]]


def fpinq(ages: list[int], wanted: Sequence[str]) -> Asked:
    import numpy
    import polars

    import fpinq as fp

    table = fp.protect(
        polars.DataFrame({"age": numpy.array(ages)}),
        budget=10**9,
        columns={"age": fp.Column(bounds=(LEAST, LARGEST))},
    )
    bins = list(range(LEAST, LARGEST + 1, WIDTH))
    return {
        "count": lambda: table.noisy_count(EPSILON).value,
        "sum": lambda: table.noisy_sum(EPSILON, "age").value,
        "average": lambda: table.noisy_average(EPSILON, "age").value,
        "median": lambda: table.noisy_median(EPSILON, "age").value,
        "variance": lambda: table.noisy_variance(EPSILON, "age").value,
        "histogram": lambda: [one.value for one in table.noisy_histogram(EPSILON, "age", bins=bins).values()],
    }


def opendp(ages: list[int], wanted: Sequence[str]) -> Asked:
    """Of an unknown number of rows an average is a sum and a count, at half of ε each."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    clamped = rows >> dp.t.then_clamp((LEAST, LARGEST))

    def at(epsilon: float, query: Any) -> Any:
        return dp.binary_search_chain(lambda scale: query >> dp.m.then_laplace(scale), 1, epsilon)

    count, total = rows >> dp.t.then_count(), clamped >> dp.t.then_sum()
    binned = (
        dp.vector_domain(dp.atom_domain(T=int)),
        dp.symmetric_distance(),
    ) >> dp.t.then_count_by_categories(list(range(LEAST // WIDTH, LARGEST // WIDTH)), null_category=False)
    points = list(range(LEAST, LARGEST + 1))
    middle = dp.binary_search_chain(
        lambda scale: rows >> dp.m.then_private_quantile(dp.max_divergence(), points, 0.5, scale), 1, EPSILON
    )
    counted, added, bars = at(EPSILON, count), at(EPSILON, total), at(EPSILON, binned)
    half_count, half_sum = at(EPSILON / 2, count), at(EPSILON / 2, total)
    in_bins = [min(age // WIDTH, LARGEST // WIDTH - 1) for age in ages]
    return {
        "count": lambda: counted(ages),
        "sum": lambda: added(ages),
        "average": lambda: half_sum(ages) / max(half_count(ages), 1),
        "median": lambda: middle(ages),
        "histogram": lambda: bars(in_bins),
    }


def diffprivlib(ages: list[int], wanted: Sequence[str]) -> Asked:
    """The number of rows is public: a neighbour has another value in one row."""
    import numpy
    from diffprivlib import tools

    array, within = numpy.array(ages, dtype=float), (LEAST, LARGEST)
    return {
        "count": lambda: tools.count_nonzero(array >= LEAST, epsilon=EPSILON),
        "sum": lambda: tools.sum(array, epsilon=EPSILON, bounds=within),
        "average": lambda: tools.mean(array, epsilon=EPSILON, bounds=within),
        "median": lambda: tools.median(array, epsilon=EPSILON, bounds=within),
        "variance": lambda: tools.var(array, epsilon=EPSILON, bounds=within),
        "histogram": lambda: tools.histogram(array, epsilon=EPSILON, bins=LARGEST // WIDTH, range=within)[
            0
        ].tolist(),
    }


def pydp(ages: list[int], wanted: Sequence[str]) -> Asked:
    from pydp.algorithms import laplacian

    def of(kind: str, **more: Any) -> Callable[[], float]:
        return lambda: float(
            getattr(laplacian, kind)(epsilon=EPSILON, dtype="int", **more).quick_result(ages)
        )

    within = {"lower_bound": LEAST, "upper_bound": LARGEST}
    return {
        "count": of("Count"),
        "sum": of("BoundedSum", **within),
        "average": of("BoundedMean", **within),
        "median": of("Median", **within),
        "variance": of("BoundedVariance", **within),
    }


def pipeline_dp(ages: list[int], wanted: Sequence[str]) -> Asked:
    import pipeline_dp as dp

    rows = [(number, min(age // WIDTH, 9), age) for number, age in enumerate(ages)]

    def ask(metric: Any, partition: Callable[[Any], int], parts: list[int]) -> list[float]:
        budget = dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=1e-9)
        parameters = dp.AggregateParams(
            metrics=[metric],
            noise_kind=dp.NoiseKind.LAPLACE,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=LEAST,
            max_value=LARGEST,
        )
        extractors = dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=partition,
            value_extractor=lambda row: row[2],
        )
        found = dp.DPEngine(budget, dp.LocalBackend()).aggregate(
            rows, parameters, extractors, public_partitions=parts
        )
        budget.compute_budgets()
        return [value[0] for _, value in sorted(found)]

    def whole(metric: Any) -> Callable[[], float]:
        return lambda: ask(metric, lambda row: 0, [0])[0]

    return {
        "count": whole(dp.Metrics.COUNT),
        "sum": whole(dp.Metrics.SUM),
        "average": whole(dp.Metrics.MEAN),
        "median": whole(dp.Metrics.PERCENTILE(50)),
        "variance": whole(dp.Metrics.VARIANCE),
        "histogram": lambda: ask(dp.Metrics.COUNT, lambda row: row[1], list(range(10))),
    }


def smartnoise(ages: list[int], wanted: Sequence[str]) -> Asked:
    """At an ε of its own for each column, so that its odometer says EPSILON in all."""
    import pandas
    from snsql import Privacy, from_df

    frame = pandas.DataFrame({"age": ages})
    facts = {"row_privacy": True, "rows": len(ages), "age": {"type": "int", "lower": LEAST, "upper": LARGEST}}

    def reader(rows: Any, epsilon: float) -> Any:
        return from_df(rows, privacy=Privacy(epsilon=epsilon, delta=1e-9), metadata={"": {"d": {"t": facts}}})

    def of(column: str) -> Callable[[], float]:
        text = f"SELECT {column} AS x FROM d.t"
        costs = reader(frame.head(), EPSILON).get_privacy_cost(text)[0] / EPSILON
        asked = reader(frame, EPSILON / costs)
        return lambda: float(asked.execute(text)[1][0])

    columns = {"count": "COUNT(*)", "sum": "SUM(age)", "average": "AVG(age)", "variance": "VARIANCE(age)"}
    return {name: of(column) for name, column in columns.items() if name in wanted}


def tumult(ages: list[int], wanted: Sequence[str]) -> Asked:
    import os

    os.environ["PYSPARK_PYTHON"] = sys.executable
    import pandas
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    # A question takes seconds whatever the rows: of the same rows many times over, one is many answers.
    copies = 1 if wanted == ("average",) else 20
    frame = pandas.DataFrame({"age": ages * copies})
    frame["copy"] = [copy for copy in range(copies) for _ in ages]
    frame["bin"] = (frame.age // WIDTH).clip(upper=9)
    rows = spark.createDataFrame(frame).cache()
    rows.count()
    session = Session.from_dataframe(PureDPBudget(float("inf")), "ages", rows, protected_change=AddOneRow())
    query: Any = QueryBuilder("ages")
    bins = KeySet.from_dict({"copy": list(range(copies)), "bin": list(range(10))})
    each = query if copies == 1 else query.groupby(KeySet.from_dict({"copy": list(range(copies))}))

    def answers(asked: Any) -> Iterator[Any]:
        while True:
            found = session.evaluate(asked, PureDPBudget(EPSILON)).toPandas()
            if "bin" not in found:
                yield from (float(one) for one in found.iloc[:, -1])
                continue
            for _, some in found.sort_values(["copy", "bin"]).groupby("copy"):
                yield [float(one) for one in some.iloc[:, -1]]

    made = {
        "count": answers(each.count()),
        "sum": answers(each.sum("age", LEAST, LARGEST)),
        "average": answers(each.average("age", LEAST, LARGEST)),
        "median": answers(each.median("age", LEAST, LARGEST)),
        "variance": answers(each.variance("age", LEAST, LARGEST)),
        "histogram": answers(query.groupby(bins).count()),
    }
    return {name: lambda one=one: next(one) for name, one in made.items()}  # type: ignore[misc]


# Each peer, the packages that it is, what is asked of it, and how often: the slow ones less.
Make = Callable[[list[int], Sequence[str]], Asked]
PEERS: dict[str, tuple[tuple[str, ...], Make, int]] = {
    "fpinq": ((), fpinq, 400),
    "opendp": (("opendp",), opendp, 400),
    "diffprivlib": (("diffprivlib", "scikit-learn<1.6"), diffprivlib, 400),
    "python-dp": (("python-dp",), pydp, 400),
    "pipeline-dp": (("pipeline-dp",), pipeline_dp, 60),
    "smartnoise-sql": (("smartnoise-sql",), smartnoise, 60),
    "tmlt.analytics": (("tmlt.analytics",), tumult, 20),
    "qrlew": (("qrlew",), lambda ages, wanted: {}, 0),
}


# ── one system, in its own environment ───────────────────────────────────────────────


def exactly(ages: list[int]) -> dict[str, Any]:
    mean = fmean(ages)
    bins = [0] * (LARGEST // WIDTH)
    for age in ages:
        bins[min(age // WIDTH, len(bins) - 1)] += 1
    return {
        "count": len(ages),
        "sum": sum(ages),
        "average": mean,
        "median": median(ages),
        "variance": fmean((age - mean) ** 2 for age in ages),
        "histogram": bins,
    }


def off(found: Any, true: Any) -> float:
    """The mean square of how far an answer is off."""
    if isinstance(true, list):
        return fmean((a - b) ** 2 for a, b in zip(found, true, strict=True))
    return float((found - true) ** 2)


def measured(name: str, ages: list[int]) -> dict[str, Any]:
    """RMSE of each question, and the seconds of an average of a million rows: to get ready, and to ask."""
    packages, make, times = PEERS[name]
    asked, true = make(ages, QUESTIONS), exactly(ages)
    rmse = {
        question: fmean(off(ask(), true[question]) for _ in range(times)) ** 0.5
        for question, ask in asked.items()
    }
    many = (ages * (MANY // len(ages) + 1))[:MANY]
    ready, took = zip(*(_timed(make, many) for _ in range(3 if times > 100 else 1)), strict=True)
    version = metadata.version(packages[0] if packages else "fpinq")
    return {"rmse": rmse, "times": times, "ready": min(ready), "took": min(took), "version": version}


def _timed(make: Make, ages: list[int]) -> tuple[float, float]:
    began = time.perf_counter()
    ask = make(ages, ("average",))["average"]
    ready = time.perf_counter()
    ask()
    return ready - began, time.perf_counter() - ready


# ── all of them ──────────────────────────────────────────────────────────────────────


def rows_of(data: Path | None) -> list[int]:
    """Ages: of a file's rows that are taken by a seed, or made up."""
    chance = random.Random(17)
    if data is None:
        return [max(17, min(90, round(chance.gauss(39, 14)))) for _ in range(ROWS)]
    with data.open(encoding="utf-8", newline="") as lines:
        found = [int(row["age"]) for row in DictReader(lines)]
    return chance.sample(found, min(ROWS, len(found)))


def environment(name: str, install: bool) -> Path | None:
    """The interpreter of a system; none where it cannot be had."""
    packages = PEERS[name][0]
    if not packages:
        return Path(sys.executable)
    folder = WHERE / name
    python = folder / "bin/python"
    if install and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        if subprocess.run(pip, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            (folder / "failed").touch()
    return python if python.exists() and not (folder / "failed").exists() else None


def run(name: str, python: Path, data: Path | None) -> dict[str, Any] | None:
    """What a system measured, in a process of its own; nothing where that failed."""
    command = [str(python), __file__, "--measure", name, *(() if data is None else ("--data", str(data)))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _shown(error: float) -> str:
    """Three digits."""
    return f"{float(f'{error:.3g}'):,.0f}" if error >= 1000 else f"{error:.3g}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="a CSV file with a column age")
    parser.add_argument(
        "--install", action="store_true", help=f"environments in {WHERE}, where they are missing"
    )
    parser.add_argument("--only", nargs="+", choices=PEERS, help="these")
    parser.add_argument("--measure", choices=PEERS, help="one, in this interpreter; prints JSON")
    given = parser.parse_args(arguments)
    ages = rows_of(given.data)
    if given.measure:
        print(json.dumps(measured(given.measure, ages)))
        return 0
    named = "made up" if given.data is None else given.data.name
    print(
        f"RMSE at ε = {EPSILON:g} of {len(ages):,} ages ({named}); seconds of an average of {MANY:,} rows\n"
    )
    print(f"| | {' | '.join(QUESTIONS)} | get ready | ask |")
    print(f"|---|{'---:|' * (len(QUESTIONS) + 2)}")
    without = []
    for name in given.only or PEERS:
        python = environment(name, given.install)
        found = None if python is None else run(name, python, given.data)
        if found is None:
            without.append(name)
            continue
        errors = [_shown(found["rmse"][q]) if q in found["rmse"] else "–" for q in QUESTIONS]
        cells = [f"{name} {found['version']}", *errors, f"{found['ready']:.2f}", f"{found['took']:.3f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    if without:
        print(f"\nnot measured: {', '.join(without)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
