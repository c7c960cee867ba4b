"""Exact discrete Laplace and Gaussian noise, in samples a second on one core, beside OpenDP's.

    python bench/noise.py

Both draw in the same run, taking turns; the best of several rounds counts.
Selection is timed too, for which OpenDP has no peer that takes runs.
"""

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from types import ModuleType

from fpinq.model.domains import StringDomain
from fpinq.model.keys import Key
from fpinq.noise import (
    DiscreteLaplace,
    ExponentialMechanism,
    PermuteAndFlip,
    Run,
    SparseHistogram,
    gaussian,
    laplace,
)

SCALES = [Fraction(10), Fraction(22, 7), Fraction(10**6)]
OURS, THEIRS, ROUNDS = 1_000_000, 20_000, 5
SUPPORT = 100_000


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def opendp_laplace(scale: Fraction) -> Callable[[int], object]:
    """OpenDP's discrete Laplace over a vector of zeros; its scale is a float."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measure = dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=float(scale)
    )
    return lambda n: measure([0] * n)


def opendp_gaussian(sigma: Fraction) -> Callable[[int], object]:
    """OpenDP's discrete Gaussian over a vector of zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    measure = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), scale=float(sigma)
    )
    return lambda n: measure([0] * n)


def singly(sample: Callable[[Fraction], int], parameter: Fraction, n: int) -> None:
    for _ in range(n):
        sample(parameter)


def samplers(
    title: str, ours: ModuleType, opendp: Callable[[Fraction], Callable[[int], object]], power: int
) -> None:
    """Both at the same scales; ours takes a power of it, as noise has a scale or a σ²."""
    print(f"{title:>10} {'fpinq, vector':>16} {'fpinq, single':>16} {'OpenDP, vector':>16} {'ratio':>7}")
    for scale in SCALES:
        theirs, parameter = opendp(scale), scale**power
        ours.sample_many(parameter, 1000)
        theirs(1000)
        many, one, other = [], [], []
        for _ in range(ROUNDS):
            many.append(OURS / seconds(partial(ours.sample_many, parameter, OURS)))
            one.append(THEIRS / seconds(partial(singly, ours.sample, parameter, THEIRS)))
            other.append(THEIRS / seconds(partial(theirs, THEIRS)))
        ratio = max(many) / max(other)
        print(
            f"{scale!s:>10} {max(many):>14,.0f}/s {max(one):>14,.0f}/s {max(other):>14,.0f}/s {ratio:>6.1f}×"
        )
    print()


def exact_distribution() -> None:
    for noise in (DiscreteLaplace(Fraction(22, 7)), gaussian.DiscreteGaussian(Fraction(22, 7))):
        print(f"{noise}.interval(0.95), exact: {seconds(partial(noise.interval, 0.95)) * 1e6:,.0f} µs")


def selection() -> None:
    cases = {
        "100 candidates": [Run(-abs(i - 50), 1) for i in range(100)],
        "100,000 candidates": [Run(-abs(i - 50_000), 1) for i in range(100_000)],
        "10⁹ candidates in 1,000 runs": [Run(-abs(i - 500), 10**6) for i in range(1000)],
    }
    print(f"\n{'one choice':<32} {'permute-and-flip':>18} {'exponential':>18}")
    for name, runs in cases.items():
        times = []
        for mechanism in (PermuteAndFlip, ExponentialMechanism):
            chooser = mechanism(Fraction(1, 10), monotone=True)
            best = min(seconds(partial(chooser.choose, runs)) for _ in range(ROUNDS))
            times.append(best * 1e3)
        print(f"{name:<32} {times[0]:>15.2f} ms {times[1]:>15.2f} ms")


def sparse() -> None:
    """Counts of 100,000 keys over all texts of so many bytes: nobody has a peer for it."""
    counts: dict[Key, int] = {f"key number {i} of many": i % 997 for i in range(SUPPORT)}
    print(f"\n{SUPPORT:,} keys with records over all texts")
    noises = DiscreteLaplace(Fraction(1)), gaussian.DiscreteGaussian.calibrated(1, Fraction(3, 200))
    for max_bytes in (32, 36, 128):
        domain = StringDomain(max_bytes)
        for noise in noises:
            histogram = SparseHistogram(noise, domain)
            best = min(seconds(partial(histogram.release, counts)) for _ in range(ROUNDS))
            print(
                f"  {max_bytes:>4} bytes, 10^{len(str(domain.size)) - 1:<4} {type(noise).__name__:<17}"
                f" t = {histogram.threshold:<4} {best:>6.3f} s"
            )


if __name__ == "__main__":
    samplers("Laplace, s", laplace, opendp_laplace, 1)
    samplers("Gauss, σ", gaussian, opendp_gaussian, 2)
    exact_distribution()
    selection()
    sparse()
