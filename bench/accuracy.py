"""Accuracy at the same ε on the same data: RMSE against theory, against the usual way, and against peers.

    python bench/accuracy.py [--quick] [--peers /path/to/python …]

Most rows draw from the mechanisms over one exact statistic, as a query does; rows marked "end to end" ask a
table through the client. Peers (opendp, diffprivlib, python-dp) run if they can be imported, here or by
another interpreter given with --peers; they are there to look at and decide nothing (diffprivlib takes the
number of records as public, which is why its counts and averages have less to hide). Exits with 1 if a bar
is missed.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

AGES = (0, 110)


def people(n: int, centre: float = 42, spread: float = 18) -> list[int]:
    """Integer ages, with ties, between 0 and 110."""
    drawn = np.random.default_rng(1).normal(centre, spread, n)
    return [int(age) for age in np.clip(np.round(drawn), *AGES)]


def rmse(found: Any, truth: float) -> float:
    return math.sqrt(float(np.mean((np.asarray(found, dtype=float) - truth) ** 2)))


# ── ours ─────────────────────────────────────────────────────────────────────────────


def answers(query: Any, values: list[int], epsilon: Fraction, times: int) -> list[Any]:
    """What a query gives, times over: one exact statistic, new noise, read as the client reads it."""
    from fpinq.client.queries import Subject
    from fpinq.engines import reference
    from fpinq.engines.reference import Relation
    from fpinq.model.expressions import Schema, Type
    from fpinq.runtime.mechanisms import draw

    schema = Schema.of({"v": Type.INT64})
    prepared = query.prepare(Subject(schema), epsilon)
    table = Relation(schema, tuple((value,) for value in values))
    (exact,) = reference.measure(table, None, [prepared.primitive.statistic])
    return [prepared.read(draw(prepared.primitive, exact, epsilon), epsilon).value for _ in range(times)]


def laplace_deviation(sensitivity: int, epsilon: Fraction) -> float:
    from fpinq.noise import DiscreteLaplace

    return DiscreteLaplace(sensitivity / epsilon).standard_deviation


Row = tuple[str, float, float, float, bool]


def rows(k: int) -> Iterator[Row]:
    """What, RMSE, what it is compared with, the bar on their ratio, and whether the bar is met. k: effort."""
    import fpinq as fp

    tenth = Fraction(1, 10)
    ages = people(1_000)

    def at_most(what: str, found: float, beside: float, bar: float) -> Row:
        return what, found, beside, bar, found / beside <= bar

    def within(what: str, found: float, beside: float, tolerance: float) -> Row:
        return what, found, beside, 1 + tolerance, abs(found / beside - 1) <= tolerance

    found = answers(fp.count(), ages, tenth, 20_000 * k)
    yield at_most("count", rmse(found, 1000), laplace_deviation(1, tenth), 1.02)
    found = answers(fp.sum("v", AGES), ages, tenth, 20_000 * k)
    yield at_most("sum", rmse(found, sum(ages)), laplace_deviation(110, tenth), 1.02)

    decades = list(range(12))
    truth = np.array([sum(age // 10 == decade for age in ages) for decade in decades])
    data = fp.protect([{"v": age} for age in ages], budget=10**9, schema={"v": "int64"})
    grouped = np.array(
        [
            [a.value for a in data.query(tenth, fp.count(), by=lambda x: x.v // 10, keys=decades).values()]
            for _ in range(1_000 * k)
        ]
    )
    yield at_most("grouped count, end to end", rmse(grouped - truth, 0), laplace_deviation(1, tenth), 1.02)
    one_by_one = [data.noisy_sum(tenth, "v", AGES).value for _ in range(4_000 * k)]
    yield within("sum, end to end", rmse(one_by_one, sum(ages)), laplace_deviation(110, tenth), 0.04)

    for centre, spread in ((55, 8), (90, 8)):
        many = [
            int(v) for v in np.clip(np.round(np.random.default_rng(3).normal(centre, spread, 10_000)), 0, 110)
        ]
        mean = sum(many) / len(many)
        m = (mean - 55) / 55
        # One Laplace draw on Σ(x − middle), of sensitivity W/2, divided by a size that is known.
        one = laplace_deviation(55, tenth) / len(many)
        found = answers(fp.average("v", AGES), many, tenth, 10_000 * k)
        yield within(f"average, m = {m:.2f}", rmse(found, mean), math.sqrt(2 * (1 + m * m)) * one, 0.03)

        variance = float(np.var(many))
        found = answers(fp.variance("v", AGES), many, tenth, 5_000 * k)
        thirds = split_in_three(many, float(tenth), 50_000)
        yield at_most(f"variance, m = {m:.2f}", rmse(found, variance), rmse(thirds, variance), 1 / 1.3)

    median = sorted(ages)[500]
    found = answers(fp.median("v", AGES), ages, tenth, 5_000 * k)
    yield within(
        "median of 1,000 ages", rmse(found, median), tie_aware_median(ages, float(tenth), median), 0.03
    )
    ties = [40] * 998 + [3, 99]
    yield exactly("median of ties", answers(fp.median("v", AGES), ties, tenth, 500 * k), 40)
    gap = [10] * 400 + [50] * 200 + [100] * 400
    yield exactly("median in a wide gap", answers(fp.median("v", AGES), gap, tenth, 500 * k), 50)


def exactly(what: str, found: list[Any], truth: int) -> Row:
    off = sum(value != truth for value in found) / len(found)
    return f"{what}: not exact", off, 1.0, 0.01, off <= 0.01


def split_in_three(values: list[int], epsilon: float, times: int) -> Any:
    """The usual variance: count, centred sum and centred sum of squares, a third of ε each."""
    random = np.random.default_rng(5)
    centred = np.array(values) - 55.0
    n = len(values) + random.laplace(0, 3 / epsilon, times)
    first = centred.sum() + random.laplace(0, 3 * 55 / epsilon, times)
    second = (centred**2).sum() + random.laplace(0, 3 * 55**2 / epsilon, times)
    return np.clip(second / n - (first / n) ** 2, 0, 55**2)


def tie_aware_median(values: list[int], epsilon: float, median: int) -> float:
    """The RMSE of permute-and-flip over all ages with score −max(#below, #above), by integration.

    P[r] = ∫₀¹ p_r·Π_{s≠r} (1 − p_s·t) dt, p = e^(ε·(score − best)).
    """
    ages, sorted_values = np.arange(AGES[0], AGES[1] + 1), np.sort(values)
    below = np.searchsorted(sorted_values, ages, "left")
    above = len(values) - np.searchsorted(sorted_values, ages, "right")
    score = -np.maximum(below, above)
    p = np.exp(epsilon * (score - score.max()))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    t, weights = (nodes + 1) / 2, weights / 2
    stays = 1 - np.outer(p, t)
    mass = np.array([p[r] * weights @ np.prod(np.delete(stays, r, axis=0), axis=0) for r in range(len(p))])
    assert abs(mass.sum() - 1) < 1e-9
    return math.sqrt(float(mass @ (ages - median) ** 2.0))


# ── peers ────────────────────────────────────────────────────────────────────────────


def opendp(values: list[int], epsilon: float) -> dict[str, Callable[[], float]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()

    def count(at: float) -> Any:
        return space >> dp.t.then_count() >> dp.m.then_laplace(scale=1 / at)

    def total(at: float) -> Any:
        return space >> dp.t.then_clamp(AGES) >> dp.t.then_sum() >> dp.m.then_laplace(scale=110 / at)

    counted, added = count(epsilon), total(epsilon)
    half_count, half_sum = count(epsilon / 2), total(epsilon / 2)
    return {
        "count": lambda: counted(values),
        "sum": lambda: added(values),
        "average": lambda: half_sum(values) / max(half_count(values), 1),
    }


def diffprivlib(values: list[int], epsilon: float) -> dict[str, Callable[[], float]]:
    from diffprivlib import tools

    array = np.array(values, dtype=float)
    return {
        "count": lambda: tools.count_nonzero(array >= 0, epsilon=epsilon),
        "sum": lambda: tools.sum(array, epsilon=epsilon, bounds=AGES),
        "average": lambda: tools.mean(array, epsilon=epsilon, bounds=AGES),
        "variance": lambda: tools.var(array, epsilon=epsilon, bounds=AGES),
        "median": lambda: tools.median(array, epsilon=epsilon, bounds=AGES),
    }


def python_dp(values: list[int], epsilon: float) -> dict[str, Callable[[], float]]:
    from pydp.algorithms import laplacian

    def of(kind: str, **bounds: Any) -> Callable[[], float]:
        return lambda: float(getattr(laplacian, kind)(epsilon=epsilon, **bounds).quick_result(values))

    limits = {"lower_bound": 0, "upper_bound": 110, "dtype": "int"}
    return {
        "count": of("Count", dtype="int"),
        "sum": of("BoundedSum", **limits),
        "average": of("BoundedMean", **limits),
        "variance": of("BoundedVariance", **limits),
    }


PEERS = {"opendp": opendp, "diffprivlib": diffprivlib, "python-dp": python_dp}


def peer_errors(times: int) -> dict[str, dict[str, float]]:
    """Peer ↦ query ↦ RMSE on 1,000 ages at ε = 0.1, of those that this interpreter can import."""
    ages = people(1_000)
    truths = {
        "count": 1000.0,
        "sum": float(sum(ages)),
        "average": sum(ages) / 1000,
        "variance": float(np.var(ages)),
        "median": float(sorted(ages)[500]),
    }
    found: dict[str, dict[str, float]] = {}
    for name, peer in PEERS.items():
        try:
            queries = peer(ages, 0.1)
        except Exception as missing:
            print(f"{name}: skipped ({type(missing).__name__})", file=sys.stderr)
            continue
        for query, ask in queries.items():
            try:
                error = rmse([ask() for _ in range(times)], truths[query])
            except Exception as failed:
                print(f"{name}, {query}: skipped ({type(failed).__name__})", file=sys.stderr)
                continue
            found.setdefault(name, {})[query] = error
    return found


def ours_beside_peers(times: int) -> dict[str, float]:
    import fpinq as fp

    ages, tenth = people(1000), Fraction(1, 10)
    mean, middle = sum(ages) / 1000, sorted(ages)[500]
    return {
        "count": rmse(answers(fp.count(), ages, tenth, times), 1000),
        "sum": rmse(answers(fp.sum("v", AGES), ages, tenth, times), sum(ages)),
        "average": rmse(answers(fp.average("v", AGES), ages, tenth, times), mean),
        "variance": rmse(answers(fp.variance("v", AGES), ages, tenth, times), float(np.var(ages))),
        "median": rmse(answers(fp.median("v", AGES), ages, tenth, times), middle),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer repetitions; the bars may be missed by chance"
    )
    parser.add_argument("--peers", nargs="*", default=[], help="interpreters that have other peers installed")
    parser.add_argument("--only-peers", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_peers:
        print(json.dumps(peer_errors(1_000)))
        return 0

    missed = 0
    print(f"{'query':<32} {'RMSE':>12} {'beside':>12} {'ratio':>7} {'bar':>7}")
    for what, found, beside, bar, met in rows(1 if options.quick else 5):
        verdict = "met" if met else "MISSED"
        print(
            f"{what:<32} {found:>12,.4f} {beside:>12,.4f} {found / beside:>7.3f} {bar:>7.3f}  {verdict}",
            flush=True,
        )
        missed += not met

    print("\nRMSE on 1,000 ages at ε = 0.1, and how many times ours:")
    ours = ours_beside_peers(2_000)
    print(f"{'':<14}" + "".join(f"{query:>22}" for query in ours))
    print(f"{'fpinq':<14}" + "".join(f"{error:>22,.3f}" for error in ours.values()))
    peers = peer_errors(1_000)
    for interpreter in options.peers:
        command = [interpreter, __file__, "--only-peers"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            peers.update(json.loads(done.stdout.splitlines()[-1]))
    for name, errors in peers.items():
        cells = (f"{errors[q]:,.3f} ({errors[q] / ours[q]:.2f}×)" if q in errors else "–" for q in ours)
        print(f"{name:<14}" + "".join(f"{cell:>22}" for cell in cells))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
