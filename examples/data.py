"""A made-up town: people, their visits to a clinic, and the cars of its households.

    python examples/data.py [folder]

Written once, as parquet files; 50,000 people, about 120,000 visits, 18,000 cars.
"""

import sys
import tempfile
from pathlib import Path

PEOPLE = 50_000
HOUSEHOLDS = 20_000
CITIES = ["Altdorf", "Bergen", "Calau", "Dornum"]


def folder() -> Path:
    """The folder given on the command line, or one for temporary files."""
    return Path(sys.argv[1] if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "fpinq-demo")


def make(where: Path) -> Path:
    """Write the files, unless they are there."""
    files = {name: where / f"{name}.parquet" for name in ("people", "visits", "cars")}
    if all(path.exists() for path in files.values()):
        return where
    import duckdb
    import numpy as np

    where.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(1505)
    age = np.clip(random.gamma(5.5, 8.0, PEOPLE), 0, 104).astype("int64")
    people = {
        "person_id": np.arange(PEOPLE),
        "household": random.integers(0, HOUSEHOLDS, PEOPLE),
        "age": age,
        "gender": random.integers(0, 2, PEOPLE),
        "city": np.array(CITIES, dtype=object)[random.choice(4, PEOPLE, p=[0.4, 0.3, 0.2, 0.1])],
        "income": np.where(age < 16, 0.0, np.round(random.lognormal(10.2, 0.6, PEOPLE), 2)),
    }
    # Older people come more often; a few come very often.
    often = random.poisson(0.5 + age / 20) + (random.random(PEOPLE) < 0.01) * 15
    visits = {
        "person_id": np.repeat(np.arange(PEOPLE), often),
        "month": random.integers(1, 13, often.sum()),
        "cost": np.round(random.exponential(90.0, often.sum()), 2),
    }
    cars = {
        "household": random.integers(0, HOUSEHOLDS, 18_000),
        "electric": random.random(18_000) < 0.2,
    }
    for name, columns in (("people", people), ("visits", visits), ("cars", cars)):
        connection = duckdb.connect()
        connection.register("columns", columns)
        connection.sql("SELECT * FROM columns").write_parquet(str(files[name]))
    return where


if __name__ == "__main__":
    print(f"people, visits and cars are in {make(folder())}")
