"""One throw-away PostgreSQL for all tests of this process; skipped, visibly, where there is none.

It is set up to be misunderstood: its texts are sorted by a language, its settings and its
functions mean something else than usual. The engine's role can read the tables and nothing else.
"""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from engines.nasty import VALUES
from fpinq.engines.postgres import Postgres
from fpinq.model.expressions import Type
from ledger.throwaway_postgres import NoPostgreSQL, Server, throwaway_postgres
from postgres.tables import READER, OnTables, Owner

HOSTILE = {
    "bytea_output": "escape",
    "datestyle": "SQL, DMY",
    "default_transaction_isolation": "read uncommitted",
    "extra_float_digits": "-15",
    "intervalstyle": "iso_8601",
    "jit": "on",
    "jit_above_cost": "0",
    "search_path": "evil, public",
    "standard_conforming_strings": "off",
    "statement_timeout": "1h",
    "timezone": "Asia/Kolkata",
    "transform_null_equals": "on",
}
# Found before PostgreSQL's own, by whoever looks in the schema first.
EVIL = """
CREATE SCHEMA evil;
CREATE FUNCTION evil.abs(float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 42::float8';
CREATE FUNCTION evil.floor(float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 42::float8';
CREATE FUNCTION evil.char_length(text) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 42';
CREATE FUNCTION evil.plus(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 42::bigint';
CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.plus);
CREATE FUNCTION evil.more(bigint, bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.more);
GRANT USAGE ON SCHEMA evil TO PUBLIC;
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A database is started for them: asked for by name, or skipped.
    named = any("postgres" in argument for argument in config.args)
    for item in items:
        if not named and "postgres" in item.fspath.dirname.rsplit("/", 1)[-1]:
            item.add_marker(pytest.mark.skip(reason="make postgres runs these"))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    try:
        with throwaway_postgres() as running:
            yield running
    except NoPostgreSQL as reason:
        pytest.skip(f"no PostgreSQL: {reason}")


@pytest.fixture(scope="session")
def owner(server: Server) -> Iterator[Owner]:
    """The owner of a hostile database."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {READER} LOGIN")  # type: ignore[arg-type]
        made = "CREATE DATABASE hostile TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
        try:
            connection.execute(f"{made} LOCALE_PROVIDER icu ICU_LOCALE 'en'")  # type: ignore[arg-type]
        except psycopg.errors.FeatureNotSupported:  # a PostgreSQL that was built without languages
            connection.execute(made)  # type: ignore[arg-type]
        for name, value in HOSTILE.items():
            connection.execute(f"ALTER ROLE {READER} SET {name} = {_quoted(name, value)}")  # type: ignore[arg-type]
    found = Owner(server.url("hostile"))
    found.run(EVIL)
    yield found
    found.connection.close()


def _quoted(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"


@pytest.fixture(scope="module")
def postgres(owner: Owner) -> Iterator[Postgres]:
    engine = Postgres(owner.readers)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def engine(postgres: Postgres, owner: Owner) -> OnTables:
    """PostgreSQL, for suites that give rows."""
    return OnTables(postgres, owner)


@pytest.fixture
def loaded(engine: OnTables) -> OnTables:
    return engine


@pytest.fixture(autouse=True, scope="module")
def _without_nul() -> Iterator[None]:
    """A gap: PostgreSQL has no text with a NUL in it, so no table has one, and constants are refused."""
    strings: list[Any] = VALUES[Type.STRING]
    before = list(strings)
    strings[:] = [text for text in strings if text is None or "\0" not in text]
    yield
    strings[:] = before
