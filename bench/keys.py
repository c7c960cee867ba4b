"""Keys that nobody listed, over all texts of 32 bytes: the time of a release through the public API.

    python bench/keys.py [--keys 100000]

A column with so many different texts, each of one record or of many, is counted by `noisy_histogram` over a
domain of about 10⁶⁹ texts at ε = 1, and with δ = 10⁻⁹. Processor time of this process, of all its threads.
"""

import argparse
import random
import time

import fpinq as fp

BAR_SECONDS = 2.0


def main() -> None:
    """The times; an error if the bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=100_000)
    number = parser.parse_args().keys
    texts = [f"{random.getrandbits(8 * 16):032x}" for _ in range(number)]
    rows = [{"text": text} for text in texts] + [{"text": text} for text in texts[:100] for _ in range(500)]
    budget = fp.approximate(epsilon=100, delta="1e-6", keys_delta="1e-6")
    table = fp.protect(rows, budget=budget, schema={"text": "string"})
    missed = False
    print(f"{'keys=':<34}{'threshold':>10}{'shown':>8}{'seconds':>9}")
    for spelled, keys in {
        "fp.domain.strings(max_bytes=32)": fp.domain.strings(max_bytes=32),
        'fp.discover(delta="1e-9")': fp.discover(delta="1e-9"),
    }.items():
        began = time.process_time()
        found = table.noisy_histogram(1, "text", keys=keys)
        took = time.process_time() - began
        print(f"{spelled:<34}{found.threshold:>10}{len(found):>8}{took:>9.2f}")
        missed |= took > BAR_SECONDS
    if missed:
        raise SystemExit(f"more than {BAR_SECONDS} s")


if __name__ == "__main__":
    main()
