"""fp.protect and the server on PostgreSQL: tables by their names, persons, charges, ledgers, HTTP."""

import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from client.small_data import PEOPLE, PLENTY, SURE, VISITS
from fpinq import _
from fpinq.cli.main import main
from fpinq.model.expressions import Schema, Type
from fpinq.server.config import parse
from postgres.tables import READER, Owner
from postgres.test_postgres_engine import locked
from server.live import serve

PERSON = Schema.of(
    {"id": Type.INT64, "age": Type.INT64, "gender": Type.INT64, "city": Type.STRING, "income": Type.FLOAT64}
)
VISIT = Schema.of({"id": Type.INT64, "cost": Type.INT64, "day": Type.INT64})


@pytest.fixture
def people(owner: Owner) -> str:
    return owner.table(
        PERSON, [tuple(row.values()) for row in PEOPLE], {"age": "integer", "income": "numeric"}
    )


@pytest.fixture
def visits(owner: Owner) -> str:
    return owner.table(VISIT, [tuple(row.values()) for row in VISITS])


@pytest.fixture
def reader(owner: Owner) -> Any:
    engine = fp.Postgres(owner.readers)
    yield engine
    engine.close()


# ── which table ──────────────────────────────────────────────────────────────────────


def test_a_table_is_protected_by_its_name_and_asked(reader: Any, people: str) -> None:
    table = fp.protect(people, engine=reader, budget=PLENTY)
    adults = table.where(lambda x: x.age > 18)
    parts = adults.query(SURE, fp.sum(_.age, bounds=(0, 100)), by=_.gender, keys=[0, 1])
    assert [answer.value for answer in parts.values()] == [80, 120]
    assert round(table.noisy_average(SURE, _.income, bounds=(0, 5000)).value) == 1760
    assert table.noisy_median(SURE, _.age, bounds=(0, 100)).value in range(30, 41)


def test_the_tables_of_a_schema_have_names_of_their_own(owner: Owner, reader: Any) -> None:
    owner.run(f"CREATE SCHEMA clinic; GRANT USAGE ON SCHEMA clinic TO {READER}")
    for table in ("visits", "people"):
        owner.run(f"CREATE TABLE clinic.{table} (x bigint); GRANT SELECT ON clinic.{table} TO {READER}")
    tables = [fp.protect(f"clinic.{table}", engine=reader, budget=1) for table in ("visits", "people")]
    both = tables[0].concat(tables[1])
    assert both.price("1/2") == {"clinic.visits": Fraction(1, 2), "clinic.people": Fraction(1, 2)}


def test_persons_of_several_tables_are_joined_in_the_database(reader: Any, people: str, visits: str) -> None:
    both = fp.protect(
        {"people": people, "visits": visits},
        engine=reader, unit="id", rows_per_unit={"people": 1, "visits": 2}, budget=PLENTY,
    )  # fmt: skip
    # Person 2 has three visits, of which two are read; a visit of nobody is left out.
    assert both["visits"].noisy_count(SURE).value == 5
    joined = both["people"].join(both["visits"], on="id", left=fp.first(1), right=fp.first(2))
    assert joined.scaling_factor == 2
    assert joined.noisy_sum(SURE, _.cost, bounds=(0, 100)).value == 5 + 7 + 11 + 13 + 19


@pytest.mark.parametrize("wrong", ["postgres", "postgresql://reader@nowhere/x", fp.Postgres, 7])
def test_an_engine_without_an_address_says_what_to_write(wrong: Any) -> None:
    with pytest.raises(fp.ProgramError, match=r"fp\.Postgres|unknown engine"):
        fp.protect("people", engine=wrong, budget=1)


def test_rows_of_this_process_are_not_the_databases(reader: Any) -> None:
    with pytest.raises(fp.BadData, match="tables where they are"):
        fp.protect(PEOPLE, engine=reader, budget=1)


def test_importing_fpinq_imports_no_driver() -> None:
    program = "import sys, fpinq as fp; fp.Postgres; assert 'psycopg' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


# ── charges ──────────────────────────────────────────────────────────────────────────


def test_a_table_that_is_gone_is_noticed_before_the_charge(owner: Owner, reader: Any, people: str) -> None:
    table = fp.protect(people, engine=reader, budget=1)
    table.noisy_count("1/4")
    owner.run(f"DROP TABLE public.{people}")
    with pytest.raises(fp.DataChanged):
        table.noisy_sum("1/2", _.age, bounds=(0, 9))
    assert table.remaining == Fraction(3, 4)


def test_a_nul_in_a_predicate_is_refused_before_the_charge(reader: Any, people: str) -> None:
    table = fp.protect(people, engine=reader, budget=1)
    with pytest.raises(fp.BadExpression, match="NUL"):
        table.where(lambda x: x.city == "U\0lm").noisy_count("1/2")
    assert table.remaining == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.query("1/2", fp.count(), by="city", keys=["Ulm", "U\0lm"]),
        lambda table: table.partition("city", keys=["Ulm", "U\0lm"])["Ulm"].noisy_count("1/2"),
        lambda table: table.noisy_sum("1/2", (_.city == "U\0lm").cast("int64"), bounds=(0, 1)),
        lambda table: table.query("1/2", fp.several(n=fp.count(), top=fp.mode("city", ["Ulm", "\0"]))),
    ],
    ids=["keys", "a sibling's key", "a clamp", "several"],
)
def test_a_nul_in_what_is_measured_is_refused_before_the_charge(reader: Any, people: str, ask: Any) -> None:
    """In keys and in what is added up, it was an EngineError after the charge."""
    table = fp.protect(people, engine=reader, budget=1)
    with pytest.raises(fp.BadExpression, match="NUL"):
        ask(table)
    assert table.remaining == 1


@pytest.mark.parametrize("parts", [False, True])
def test_what_is_too_much_for_one_statement_is_refused_before_the_charge(
    reader: Any, people: str, parts: bool
) -> None:
    table = fp.protect(people, engine=reader, budget=1)
    asked = table.partition("city", keys=["Ulm", "Bonn"])["Ulm"] if parts else table
    with pytest.raises(fp.BadQuery, match="more than PostgreSQL can be asked"):
        asked.noisy_top("1/2", 3, "age", range(1_700))
    assert table.remaining == 1
    asked.noisy_top("1/2", 3, "age", range(1_590))
    assert table.remaining == Fraction(1, 2)


def test_a_failure_of_the_database_is_charged_and_says_nothing(
    owner: Owner, reader: Any, people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fp.protect(people, engine=reader, budget=1)
    monkeypatch.setattr(type(reader), "check_unchanged", lambda self, plan: None)
    owner.run(f"REVOKE SELECT ON public.{people} FROM {READER}")
    with pytest.raises(fp.EngineError) as raised:
        table.noisy_count("1/2")
    assert people not in str(raised.value)
    assert table.remaining == Fraction(1, 2)


# ── ledgers ──────────────────────────────────────────────────────────────────────────


def test_a_table_is_known_again_by_its_records(owner: Owner, people: str, tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")

    def again(source: str = people, name: str = "people") -> Any:
        return fp.protect(source, engine=fp.Postgres(owner.readers), budget=1, ledger=ledger, name=name)

    assert again().noisy_count("1/2").charged == Fraction(1, 2)
    assert again().remaining == Fraction(1, 2)
    turned = [tuple(row.values()) for row in PEOPLE[::-1]]
    copy = owner.table(PERSON, turned, {"age": "integer", "income": "numeric"})
    assert again(copy).remaining == Fraction(1, 2)
    with pytest.raises(fp.SameData):
        again(copy, "others")
    owner.run(f"INSERT INTO public.{people} (id) VALUES (7)")
    with pytest.raises(fp.DataChanged):
        again()


def test_a_table_that_is_written_to_is_known_by_what_its_owner_says(
    owner: Owner, people: str, visits: str, tmp_path: Path
) -> None:
    ledger = str(tmp_path / "ledger")

    def said(text: str, source: str = people, name: str = "people") -> Any:
        engine = fp.Postgres(owner.readers, contents={source: text})
        return fp.protect(source, engine=engine, budget=1, ledger=ledger, name=name)

    said("register of 2024").noisy_count("1/2")
    owner.run(f"INSERT INTO public.{people} (id) VALUES (7)")
    assert said("register of 2024").remaining == Fraction(1, 2)
    with pytest.raises(fp.SameData):
        said("register of 2024", visits, "visits")
    with pytest.raises(fp.DataChanged):
        said("register of 2025")


# ── the server ───────────────────────────────────────────────────────────────────────


def configuration(owner: Owner, people: str, folder: Path) -> Any:
    written = {
        "postgres": {"address": owner.readers, "contents": {people: "people of a test"}},
        "datasets": {
            "people": {"engine": "postgres", "table": people, "budget": PLENTY, "rows_at_most": 100},
            "small": {"path": "small.csv", "budget": 1, "rows_at_most": 9, "schema": {"id": "int64"}},
        },
    }
    (folder / "small.csv").write_text("id\n1\n2\n", encoding="utf-8")
    return parse(written, folder)


def test_a_table_is_asked_over_http(owner: Owner, people: str, tmp_path: Path) -> None:
    config = configuration(owner, people, tmp_path)
    with serve(tmp_path, config.data_sets, postgres=config.postgres) as live:
        catalog = live.connect()
        table, small = catalog["people"], catalog["small"]
        answers = table.query(SURE, fp.average(_.age, bounds=(0, 100)), by=_.gender, keys=[0, 1, 2])
        assert [round(answers[gender].value) for gender in (0, 1)] == [30, 40]
        assert live.left("people") == PLENTY - SURE
        with pytest.raises(fp.BadTransformation, match="different engines"):
            table.join(small, "id").noisy_count("1/10")
        assert small.noisy_count("1/10").charged == Fraction(1, 10)
        owner.run(f"DROP TABLE public.{people}")
        with pytest.raises(fp.DataChanged):
            table.noisy_count("1/10")


def test_a_query_that_takes_too_long_is_stopped_and_its_charge_stands(
    owner: Owner, people: str, tmp_path: Path
) -> None:
    config = configuration(owner, people, tmp_path)
    with serve(tmp_path, config.data_sets, postgres=config.postgres, limits={"query_seconds": 1}) as live:
        table = live.connect()["people"]
        with locked(owner, people), pytest.raises(fp.EngineError):
            table.noisy_sum("1/2", _.age, bounds=(0, 9))
        assert live.left("people") == PLENTY - Fraction(1, 2)
        assert table.noisy_count(SURE).value == 6


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"postgres": {"url": "x"}}, "unknown setting 'url'"),
        ({"postgres": {"address": ""}}, r"postgres\.address is a text"),
        ({"postgres": {"contents": {"people": 7}}}, r"postgres\.contents\.people is a text"),
        ({"postgres": "x"}, "postgres is a table"),
        ({"datasets": {"a": {"engine": "postgres", "path": "x", "budget": 1}}}, 'say table = "people"'),
        ({"datasets": {"a": {"engine": "postgres", "budget": 1}}}, 'say table = "people"'),
        ({"datasets": {"a": {"table": "x", "budget": 1}}}, "needs a path"),
        ({"datasets": {"a": {"table": "x", "path": "x.parquet", "budget": 1}}}, "and no table"),
    ],
)
def test_a_mistake_in_the_configuration_is_found_at_the_start(tmp_path: Path, given: Any, said: str) -> None:
    with pytest.raises(fp.ProgramError, match=said):
        parse(given, tmp_path)


def test_a_server_without_an_address_says_what_to_write(tmp_path: Path) -> None:
    given = {"datasets": {"a": {"engine": "postgres", "table": "x", "budget": 1, "rows_at_most": 9}}}
    config = parse(given, tmp_path)
    with pytest.raises(fp.ProgramError, match=r"in \[postgres\]"), serve(tmp_path, config.data_sets):
        pass


def test_the_command_line_writes_a_table_into_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "fpinq.toml"
    words = ["dataset", "add", "visits", "clinic.visits", "--engine", "postgres", "--budget", "1"]
    assert main([*words, "--rows-at-most", "100", "--config", str(file)]) == 0
    written = tomllib.loads(file.read_text(encoding="utf-8"))["datasets"]["visits"]
    assert (written["table"], written["engine"]) == ("clinic.visits", "postgres")
    assert "path" not in written
