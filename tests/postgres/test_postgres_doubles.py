"""Doubles in PostgreSQL, bit by bit: on the edges of what they can be, and a step to either side of them.

Each pair of numbers is tried as two columns, as two constants, and as a constant beside a column: what is
made of constants alone PostgreSQL computes when it plans, even in a branch that no row takes.
"""

import math
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engines.nasty import FLOATS
from fpinq.engines.postgres import doubles
from fpinq.engines.postgres.database import Database
from fpinq.engines.postgres.doubles import double
from fpinq.model.operators import OPERATORS
from postgres.tables import Owner

PAIRS = 3_000
LARGEST, LEAST = math.nextafter(math.inf, 0), 5e-324

Expected = Callable[[float, float], float | None]


def of(name: str) -> Expected:
    """The reference's value, which is null of what has none."""
    operator = OPERATORS[name]
    return lambda a, b: operator.value(*(a, b)[: len(operator.signatures[-1][0])])


def remainder(a: float, b: float) -> float | None:
    return math.fmod(a, b) + 0.0 if b and math.isfinite(a) else None


def guarded(sql: str, test: str) -> str:
    return f"CASE WHEN {test} THEN {sql} END"


CASES: dict[str, tuple[Callable[[str, str], str], Expected]] = {
    "add": (doubles.add, of("add")),
    "subtract": (lambda a, b: doubles.add(a, b, "-"), lambda a, b: OPERATORS["subtract"].value(a, b)),
    "multiply": (doubles.multiply, of("multiply")),
    "divide": (lambda a, b: doubles.divide(a, f"nullif({b}, 0)"), of("divide")),
    "remainder": (
        lambda a, b: doubles.remainder(guarded(a, f"abs({a}) < '{math.inf}'"), f"nullif({b}, 0)"), remainder,
    ),
    "exp": (lambda a, b: doubles.exp(a), of("exp")),
    "power": (lambda a, b: doubles.power(guarded(a, f"NOT ({a} = 0 AND {b} < 0)"), b), of("power")),
}  # fmt: skip


def canonical(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else number + 0.0


def numbers(source: random.Random) -> Iterator[float]:
    """Numbers of any size, near powers of two, and the nasty ones."""
    nasty = [x for x in FLOATS if x is not None and not math.isnan(x)]
    mantissas = [1.0, 1 + 2**-52, 2 - 2**-52, 1.5, 4 / 3]
    edges = [-1074, -1073, -1023, -1022, -538, -537, -1, 0, 1, 511, 512, 1022, 1023]
    while True:
        any_bits = struct.unpack("d", struct.pack("Q", source.getrandbits(64)))[0]
        exponent = source.choice([*edges, source.randint(-1074, 1023)])
        near = math.ldexp(source.choice([1, -1]) * source.choice(mantissas), exponent)
        chosen = source.choice([any_bits, near, near, source.choice(nasty)])
        if not math.isnan(chosen):
            yield chosen + 0.0


def pairs() -> list[tuple[float, float]]:
    """Random pairs, and for each those whose product or quotient is at an end of the doubles."""
    source = random.Random(12)
    stream = numbers(source)
    found = [(a, b) for a in FLOATS for b in FLOATS if a is not None and b is not None and a == a and b == b]
    while len(found) < PAIRS:
        a, b = next(stream), next(stream)
        found.append((a, b))
        if not a or math.isinf(a):
            continue
        for end in (LARGEST, LEAST, 2.0**-1022):
            about = [x for x in (end / a if abs(a) >= 1 or end < 1 else end * a, end * a) if math.isfinite(x)]
            for x in about:
                steps = (x, math.nextafter(x, 0), math.nextafter(x, math.inf), x / 2)
                found += [pair for y in steps for pair in ((a, y + 0.0), (y + 0.0, a))]
    return [(a + 0.0, b + 0.0) for a, b in found]


@pytest.fixture(scope="module")
def table(owner: Owner) -> tuple[str, list[tuple[float, float]]]:
    rows = pairs()
    owner.run("CREATE TABLE public.pairs (i bigint, a double precision, b double precision)")
    with owner.connection.cursor().copy("COPY public.pairs FROM STDIN") as copy:
        for i, row in enumerate(rows):
            copy.write_row((i, *row))
    return "public.pairs", rows


@pytest.fixture(scope="module")
def database(owner: Owner) -> Iterator[Database]:
    found = Database(owner.url)
    yield found
    found.close()


@pytest.mark.parametrize("name", CASES)
def test_columns_of_doubles(database: Database, table: Any, name: str) -> None:
    place, rows = table
    template, expected = CASES[name]
    with database.reading() as statements:
        found = statements.rows(f"SELECT i, {template('a', 'b')} FROM {place}")
    wrong = [
        (rows[i], value, expected(*rows[i]))
        for i, value in found
        if repr(canonical(value)) != repr(canonical(expected(*rows[i])))
    ]
    assert not wrong, (len(wrong), wrong[:3])
    assert len(found) >= PAIRS


@pytest.mark.parametrize("name", CASES)
def test_constant_doubles_raise_neither_where_they_are_asked_for_nor_elsewhere(
    database: Database, table: Any, name: str
) -> None:
    place, rows = table
    template, expected = CASES[name]
    chosen = [*random.Random(1).sample(rows, 60), (LEAST, 0.5), (0.5, LEAST), (LARGEST, LARGEST), (0.0, 5.0)]
    with database.reading() as statements:
        for a, b in chosen:
            ((value,),) = statements.rows(f"SELECT {template(double(a), double(b))}")
            assert repr(canonical(value)) == repr(canonical(expected(a, b))), (a, b)
            for sql in (template(double(a), "b"), template("a", double(b)), template(double(a), double(b))):
                # A branch that no row takes, and one that few take.
                statements.rows(
                    f"SELECT sum(CASE WHEN i < 0 THEN 1 WHEN i = 7 AND {sql} > 0 THEN 1 END) FROM {place}"
                )


def test_nulls_stay_null(database: Database) -> None:
    with database.reading() as statements:
        for template, _ in CASES.values():
            for a, b in (("a", "NULL"), ("NULL", "b"), ("NULL", "NULL")):
                null = "CAST(NULL AS double precision)"
                sql = template(a.replace("NULL", null), b.replace("NULL", null))
                values = (
                    "(5e-324::float8, 1e308::float8), (1, 1), ('inf', 0), (0, 'inf'), (2, 3), (-2, 1e-320)"
                )
                found = statements.rows(f"SELECT {sql} FROM (VALUES {values}) AS v(a, b)")
                if a == "NULL" or template is not CASES["exp"][0]:
                    assert found == [(None,)] * 6, sql


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (f"{2**1024 - 2**970}", math.inf),
        (f"{2**1024 - 2**970 - 1}", LARGEST),
        ("-1e999", -math.inf),
        ("1e-999", 0.0),
        ("2.470328229206232720882843964341106861825e-324", 0.0),
        ("2.470328229206232720882843964341106861826e-324", LEAST),
        ("0.1", 0.1),
        ("0", 0.0),
    ],
)  # fmt: skip
def test_a_decimal_is_the_nearest_double(database: Database, written: str, expected: float) -> None:
    with database.reading() as statements:
        ((value,),) = statements.rows(f"SELECT {doubles.of_decimal(f'CAST({written!r} AS numeric)')}")
    assert repr(value) == repr(expected)
