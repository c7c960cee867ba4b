"""Range queries on the DPBench histograms: the error of `fp.ranges` and `fp.cdf` beside plain per-bin noise.

    python bench/ranges.py [--repeat 10]

Random ranges of seven one-dimensional histograms of 4,096 bins (Hay et al., SIGMOD 2016), looked for in
$FPINQ_SHARED or in ../shared, under data/dpbench; without them, on three made-up ones. The mean absolute
error per range, over all repetitions; every row must have a ratio of at most 1. Exits with 1 if one has not.
"""

import argparse
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import fpinq as fp
from fpinq.client.queries import Subject
from fpinq.model.expressions import Schema, Type
from fpinq.model.queries import Frequencies
from fpinq.runtime.mechanisms import draw

# At ε = 10 nearly all noise is 0 and no tree pays: ranges are then the bins themselves.
EPSILONS = [Fraction(1, 100), Fraction(1, 10), Fraction(1)]
RANGES = 2_000


def histograms() -> dict[str, Any]:
    """Name ↦ counts."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    for place in (os.environ.get("FPINQ_SHARED", beside), beside):
        folder = Path(place) / "data" / "dpbench"
        if folder.is_dir():
            found = {path.stem: np.load(path) for path in sorted(folder.glob("*.npy"))}
            return {name: counts.astype(int) for name, counts in found.items() if counts.ndim == 1}
    x = np.arange(4096)
    return {
        "made up: smooth": (1000 * np.exp(-(((x - 2000) / 600) ** 2))).astype(int),
        "made up: sparse": np.where(x % 97 == 0, 500, 0),
        "made up: steps": 100 * (x // 1024),
    }


def cumulated(values: Any) -> Any:
    return np.concatenate([[0], np.cumsum(np.array([float(v) for v in values]))])


def errors(counts: Any, epsilon: Fraction, repeat: int) -> tuple[float, float, float]:
    """The mean error of plain noise, of ranges and of a cdf, on the same random ranges."""
    bins = (0, len(counts) - 1)
    subject = Subject(Schema.of({"bin": Type.INT64}))
    ranges = fp.ranges("bin", bins).prepare(subject, epsilon)
    cdf = fp.cdf("bin", bins, counts=True).prepare(subject, epsilon)
    plain = Frequencies(ranges.primitive.of)  # type: ignore[union-attr]
    statistic = {i: int(n) for i, n in enumerate(counts) if n}
    truth = cumulated(counts)
    random = np.random.default_rng(1)
    first, last = np.sort(random.integers(0, len(counts) + 1, (2, RANGES)), axis=0)

    def error(found: Any) -> float:
        return float(np.mean(np.abs((found[last] - found[first]) - (truth[last] - truth[first]))))

    total = np.zeros(3)
    for _ in range(repeat):
        by_range = ranges.read(draw(ranges.primitive, statistic, epsilon), epsilon)
        upto = cdf.read(draw(cdf.primitive, statistic, epsilon), epsilon)
        total += [
            error(cumulated(draw(plain, statistic, epsilon))),
            error(cumulated(answer.value for answer in by_range.values())),
            error(np.array([0.0, *(answer.value for answer in upto.values())])),
        ]
    flat, tree, cumulative = total / repeat
    return flat, tree, cumulative


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=10)
    repeat = parser.parse_args().repeat
    print(f"{'set':<18} {'records':>11} {'ε':>5} {'per bin':>10} {'ranges':>10} {'ratio':>6} ", end="")
    print(f"{'cdf':>10} {'ratio':>6}")
    worst = 0.0
    for name, counts in histograms().items():
        for epsilon in EPSILONS:
            flat, tree, cumulative = errors(counts, epsilon, repeat)
            ratios = tree / flat, cumulative / flat
            worst = max(worst, *ratios)
            print(
                f"{name:<18} {counts.sum():>11,} {float(epsilon):>5g} {flat:>10,.1f} {tree:>10,.1f} "
                f"{ratios[0]:>6.3f} {cumulative:>10,.1f} {ratios[1]:>6.3f}"
            )
    print(f"largest ratio: {worst:.3f}")
    return int(worst > 1)


if __name__ == "__main__":
    sys.exit(main())
