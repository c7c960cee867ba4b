"""What of a database can be protected: stored rows of types that rows have, by a role that may read them."""

from datetime import date, datetime
from itertools import count
from math import inf
from typing import Any

import psycopg
import pytest

from engines.test_conformance import bag
from fpinq.engines.postgres import Postgres
from fpinq.engines.postgres.sources import Place
from fpinq.model.errors import BadData
from fpinq.model.expressions import Column, Schema, Type
from fpinq.model.plans import RootTable
from fpinq.model.statistics import Records
from fpinq.model.transformations import Partitioning
from postgres.tables import READER, Owner

_names = count()


def fresh() -> str:
    return f"root{next(_names)}"


def read(engine: Postgres, source: str, schema: dict[str, Type] | None = None) -> tuple[Any, Any]:
    """A table's types, and its rows."""
    name = fresh()
    shape = engine.add_root(name, source, schema)
    return shape.types(), bag(engine.rows(RootTable(name)).rows)


def made(owner: Owner, definition: str, grant: str = "SELECT") -> str:
    """A relation that the role may read: CREATE … {} …, with its name in place of {}."""
    name = f"r{next(_names)}"
    owner.run(definition.replace("{}", f"public.{name}"))
    if grant:
        owner.run(f"GRANT {grant} ON public.{name} TO {READER}")
    return name


# ── names ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "schema", "table"),
    [
        ("people", "public", "people"),
        ("People", "public", "People"),
        ("census.people", "census", "people"),
        ('"a.b"."c ""d"""', "a.b", 'c "d"'),
        ('"people"', "public", "people"),
        ("drop table x;--", "public", "drop table x;--"),
    ],
)
def test_a_name_is_the_catalogs_whatever_it_would_mean_as_sql(written: str, schema: str, table: str) -> None:
    assert Place.of(written) == Place(schema, table)


@pytest.mark.parametrize(
    "wrong", ["", ".", "a.", ".a", "a.b.c", '"a', 'a"b', "a\0b", 7, None, [], [{"a": 1}]]
)
def test_what_is_no_name_of_a_table_is_refused(postgres: Postgres, wrong: Any) -> None:
    with pytest.raises(BadData, match="name one"):
        postgres.add_root(fresh(), wrong)


def test_tables_and_columns_of_any_name_are_read(postgres: Postgres, owner: Owner) -> None:
    owner.run('CREATE SCHEMA "odd.""schema"')
    owner.run('CREATE TABLE "odd.""schema"."ta.ble;--" ("a ""b""; $1 %s" bigint, "SELECT" text)')
    owner.run("""INSERT INTO "odd.""schema"."ta.ble;--" VALUES (1, 'x')""")
    owner.run(f'GRANT USAGE ON SCHEMA "odd.""schema" TO {READER}')
    owner.run(f'GRANT SELECT ON "odd.""schema"."ta.ble;--" TO {READER}')
    assert read(postgres, '"odd.""schema"."ta.ble;--"') == ((Type.INT64, Type.STRING), bag([(1, "x")]))


def test_a_table_that_is_not_there_is_refused_with_the_nearest_name(postgres: Postgres, owner: Owner) -> None:
    made(owner, "CREATE TABLE {} (a bigint)")
    owner.run("CREATE TABLE public.inhabitants (a bigint)")
    with pytest.raises(BadData, match="did you mean 'inhabitants'"):
        postgres.add_root(fresh(), "inhabitant")
    with pytest.raises(BadData, match=r"has no table 'nowhere\.people'"):
        postgres.add_root(fresh(), "nowhere.people")


# ── types ────────────────────────────────────────────────────────────────────────────

UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
CONVERTED = [
    ("boolean", Type.BOOL, [("true", True), ("false", False)]),
    ("smallint", Type.INT64, [("-32768", -32768)]),
    ("integer", Type.INT64, [("2147483647", 2**31 - 1)]),
    ("bigint", Type.INT64, [("-9223372036854775808", -(2**63))]),
    ("real", Type.FLOAT64, [("0.1", 0.10000000149011612), ("NaN", None), ("-0", 0.0), ("-Infinity", -inf)]),
    ("double precision", Type.FLOAT64, [("0.1", 0.1), ("NaN", None), ("-0", 0.0), ("5e-324", 5e-324)]),
    (
        "numeric",
        Type.FLOAT64,
        [
            ("0.1", 0.1), ("1e400", inf), ("-1e400", -inf), ("1e-400", 0.0), ("NaN", None), ("Infinity", inf),
            ("123456789012345678901234567890", 123456789012345678901234567890.0), ("2.5e-324", 5e-324),
        ],
    ),
    ("numeric(10,2)", Type.FLOAT64, [("1.25", 1.25)]),
    ("text", Type.STRING, [("ä 𝒳", "ä 𝒳"), ("", "")]),
    ("varchar(9)", Type.STRING, [("a ", "a ")]),
    ("char(5)", Type.STRING, [("ab", "ab")]),
    ("uuid", Type.STRING, [(UUID, UUID)]),
    (
        "date",
        Type.DATE,
        [
            ("0001-01-01", date.min), ("9999-12-31", date.max), ("0044-03-15 BC", None),
            ("10000-01-01", None), ("infinity", None), ("-infinity", None),
        ],
    ),
    (
        "timestamp",
        Type.TIMESTAMP,
        [("0001-01-01", datetime.min), ("9999-12-31 23:59:59.999999", datetime.max), ("infinity", None)],
    ),
    (
        "timestamptz",
        Type.TIMESTAMP,
        [
            ("2024-03-31 02:30:00+02", datetime(2024, 3, 31, 0, 30)), ("infinity", None), ("-infinity", None),
            ("9999-12-31 23:59:59.999999+00", datetime.max), ("9999-12-31 23:59:59-01", None),
            ("294276-12-31 23:59:59+00", None), ("4714-11-24 00:00:00+00 BC", None),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "ours", "values"), CONVERTED, ids=[one[0] for one in CONVERTED])
def test_a_column_is_read_as_the_type_it_stands_for(
    postgres: Postgres, owner: Owner, type_: str, ours: Type, values: list[tuple[str, Any]]
) -> None:
    table = made(owner, f"CREATE TABLE {{}} (x {type_})")
    owner.run("SET timezone = 'America/New_York'; SET datestyle = 'ISO, YMD'")
    for written, _ in (*values, (None, None)):
        owner.run(f"INSERT INTO public.{table} VALUES (CAST(%s AS {type_}))", written)
    assert read(postgres, table) == ((ours,), bag([(value,) for _, value in values] + [(None,)]))


REFUSED = {
    "an enum": "mood", "a domain": "age_of_a_person", "an array": "bigint[]", "json": "jsonb",
    "bytes": "bytea", "an interval": "interval", "a time": "time", "money": "money", "a range": "int8range",
    "a composite": "pair",
}  # fmt: skip


@pytest.fixture(scope="module")
def odd_types(owner: Owner) -> None:
    owner.run("CREATE TYPE public.mood AS ENUM ('sad', 'happy'); CREATE TYPE public.pair AS (a int, b int)")
    owner.run("CREATE DOMAIN public.age_of_a_person AS bigint CHECK (value >= 0)")
    # A type of the owner's that is called like one of PostgreSQL's.
    owner.run("CREATE DOMAIN public.int8 AS text")


@pytest.mark.parametrize("type_", REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("odd_types")
def test_a_type_that_rows_do_not_have_is_refused_and_can_be_left_out(
    postgres: Postgres, owner: Owner, type_: str
) -> None:
    table = made(owner, f"CREATE TABLE {{}} (x {type_}, y bigint)")
    with pytest.raises(BadData, match=r"column 'x' has a type that rows do not have .*MATERIALIZED"):
        postgres.add_root(fresh(), table)
    assert read(postgres, table, {"y": Type.INT64})[0] == (Type.INT64,)


@pytest.mark.usefixtures("odd_types")
def test_a_type_is_not_known_by_its_name_alone(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (x public.int8)")
    with pytest.raises(BadData, match="type that rows do not have"):
        postgres.add_root(fresh(), table)


def test_a_schema_that_the_table_does_not_have_is_refused(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (x integer, s text)")
    assert read(postgres, table, {"x": Type.FLOAT64})[0] == (Type.FLOAT64,)
    with pytest.raises(BadData, match="'x' is int64 in the data, not string"):
        postgres.add_root(fresh(), table, {"x": Type.STRING})
    with pytest.raises(BadData, match="has no column 'z'; its columns are: x, s"):
        postgres.add_root(fresh(), table, {"z": Type.STRING})
    with pytest.raises(BadData, match="no columns"):
        postgres.add_root(fresh(), made(owner, "CREATE TABLE {} ()"))


def test_a_text_longer_than_its_public_length_is_null(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (s text)")
    owner.run(
        f"INSERT INTO public.{table} VALUES ('ééé'), ('éééé'), (repeat('x', 65536)), (repeat('x', 65537))"
    )
    name = fresh()
    postgres.add_root(name, table, lengths={"s": 3})
    assert bag(postgres.rows(RootTable(name)).rows) == bag([("ééé",), (None,), (None,), (None,)])
    _, unbounded = read(postgres, table)
    assert unbounded[repr((None,))] == 1


def test_texts_are_compared_by_code_point_whatever_their_collation(postgres: Postgres, owner: Owner) -> None:
    lax = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
    try:
        owner.run(f"CREATE COLLATION public.lax ({lax})")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("a PostgreSQL that was built without languages")
    table = made(owner, "CREATE TABLE {} (s text COLLATE public.lax)")
    owner.run(f"INSERT INTO public.{table} VALUES ('x'), ('X'), ('é')")
    name = fresh()
    postgres.add_root(name, table)
    by = Partitioning(Column("s"), ("X", "x", "e\u0301"))
    assert postgres.measure(RootTable(name), by, [Records()] * 3) == [{0: 1}, {0: 1}, {}]


# ── what is not stored ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE VIEW {} AS SELECT 1 AS x",
        "CREATE VIEW {} AS SELECT random() AS x",
        "CREATE FOREIGN TABLE {} (x bigint) SERVER nowhere",
    ],
)
def test_what_is_computed_as_it_is_read_is_refused(postgres: Postgres, owner: Owner, definition: str) -> None:
    owner.run("CREATE FOREIGN DATA WRAPPER nothing") if "FOREIGN" in definition else None
    owner.run("CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing") if "FOREIGN" in definition else None
    relation = made(owner, definition)
    with pytest.raises(BadData, match="CREATE MATERIALIZED VIEW"):
        postgres.add_root(fresh(), relation)
    owner.run("DROP FOREIGN DATA WRAPPER IF EXISTS nothing CASCADE")


def test_a_partition_that_is_elsewhere_is_refused(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (x bigint) PARTITION BY LIST (x)")
    owner.run(
        f"CREATE TABLE public.{table}_1 PARTITION OF public.{table} FOR VALUES IN (1) PARTITION BY LIST (x)"
    )
    owner.run(f"CREATE TABLE public.{table}_2 PARTITION OF public.{table}_1 FOR VALUES IN (1)")
    owner.run(f"INSERT INTO public.{table} VALUES (1)")
    assert read(postgres, table)[1] == bag([(1,)])
    owner.run("CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing")
    owner.run(
        f"CREATE FOREIGN TABLE public.{table}_3 PARTITION OF public.{table} FOR VALUES IN (2) SERVER nowhere"
    )
    with pytest.raises(BadData, match="not stored in this database"):
        postgres.add_root(fresh(), table)
    owner.run("DROP FOREIGN DATA WRAPPER nothing CASCADE")


def test_stored_rows_of_every_kind_are_read(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (x bigint, y bigint GENERATED ALWAYS AS (x + 1) STORED)")
    owner.run(f"INSERT INTO public.{table} VALUES (1)")
    assert read(postgres, table)[1] == bag([(1, 2)])
    view = made(owner, f"CREATE MATERIALIZED VIEW {{}} AS SELECT x FROM public.{table}")
    assert read(postgres, view)[1] == bag([(1,)])


def test_a_column_that_is_generated_as_it_is_read_is_refused(postgres: Postgres, owner: Owner) -> None:
    if owner.connection.info.server_version < 180000:
        pytest.skip("PostgreSQL 18 has them first")
    table = made(owner, "CREATE TABLE {} (x bigint, y bigint GENERATED ALWAYS AS (1 / x) VIRTUAL)")
    with pytest.raises(BadData, match="make it STORED"):
        postgres.add_root(fresh(), table)


# ── the role ─────────────────────────────────────────────────────────────────────────


def test_a_table_that_the_role_may_not_read_is_refused_with_what_to_grant(
    postgres: Postgres, owner: Owner
) -> None:
    table = made(owner, "CREATE TABLE {} (x bigint, y bigint)", grant="")
    with pytest.raises(BadData, match=f'GRANT SELECT ON "public"."{table}"'):
        postgres.add_root(fresh(), table)
    owner.run(f"GRANT SELECT (x) ON public.{table} TO {READER}")
    with pytest.raises(BadData, match="may not read column 'y'"):
        postgres.add_root(fresh(), table)
    assert read(postgres, table, {"x": Type.INT64}) == ((Type.INT64,), bag([]))
    owner.run("CREATE SCHEMA closed; CREATE TABLE closed.people (x bigint)")
    with pytest.raises(BadData, match='GRANT USAGE ON SCHEMA "closed"'):
        postgres.add_root(fresh(), "closed.people")


def test_row_security_is_refused_where_it_applies_to_the_role(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (x bigint)")
    owner.run(
        f"INSERT INTO public.{table} VALUES (1), (2); ALTER TABLE public.{table} ENABLE ROW LEVEL SECURITY"
    )
    owner.run(f"CREATE POLICY few ON public.{table} USING (1 / (x - 2) < 0)")
    with pytest.raises(BadData, match="BYPASSRLS"):
        postgres.add_root(fresh(), table)
    assert read(Postgres(owner.url), table)[1] == bag([(1,), (2,)])


def test_a_schema_says_which_columns_there_are(postgres: Postgres, owner: Owner) -> None:
    table = made(owner, "CREATE TABLE {} (x bigint, s text, d date)")
    shape = postgres.add_root(fresh(), table, {"d": Type.DATE, "x": Type.INT64})
    assert shape == Schema.of({"d": Type.DATE, "x": Type.INT64})
