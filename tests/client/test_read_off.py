"""A schema that nobody stated is shown, stored and pinned; in one that is stated no record has a say."""

import warnings
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fpinq as fp
from fpinq.cli.main import main
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.rows import column
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import RootTable
from fpinq.runtime import ReferenceEngine
from fpinq.server.house import House
from server.live import people, serve

ROWS = [{"age": 37, "name": "a"}, {"age": 5, "name": None}]
TYPES = {"age": "int64", "name": "string"}
SHOWN = 'schema={"age": "int64", "name": "string"}'


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age,name\n37,a\n5,\n")
    return path


def objects() -> Any:
    return pd.DataFrame({"age": [37, 5], "name": pd.Series(["a", None], dtype=object)})


def categories(of: list[Any], dtype: Any = object) -> pd.CategoricalDtype:
    return pd.CategoricalDtype(pd.Index(of, dtype=dtype))


UNSTATED = {
    "csv": lambda csv: csv,
    "dicts": lambda csv: ROWS,
    "pandas objects": lambda csv: objects(),
    "polars objects": lambda csv: pl.DataFrame(
        {"age": [37, 5], "name": pl.Series(["a", None], dtype=pl.Object)}
    ),
    "pandas categories": lambda csv: objects().astype({"name": categories(["a", "b"])}),
    "pandas categories of integers": lambda csv: objects().astype({"age": "category", "name": "string"}),
}
STATED = {
    "arrow": lambda: pa.table({"age": [37, 5], "name": ["a", None]}),
    "polars": lambda: pl.DataFrame({"age": [37, 5], "name": ["a", None]}),
    "pandas": lambda: objects().astype({"name": "string"}),
    "pandas categories": lambda: objects().astype({"name": categories(["a"], "string")}),
}


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("kind", sorted(UNSTATED))
def test_a_schema_that_nobody_stated_is_shown_in_the_words_to_state_it(
    csv: Path, kind: str, engine: str
) -> None:
    with pytest.warns(fp.ReadOffData, match="was read off the data") as shown:
        table = fp.protect(UNSTATED[kind](csv), budget=1, engine=engine, name="people")
    assert SHOWN in str(shown[0].message)
    assert shown[0].filename == __file__
    assert dict(table.schema) == TYPES
    assert "read off the data" in str(table)
    assert "(schema read off the data)" in str(table.explain())


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
@pytest.mark.parametrize("kind", sorted(UNSTATED))
def test_a_stated_schema_is_no_reason_to_warn(csv: Path, kind: str, engine: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = fp.protect(UNSTATED[kind](csv), budget=1, engine=engine, name="people", schema=TYPES)
    assert "read off" not in str(table) + str(table.explain())


@pytest.mark.parametrize("kind", sorted(STATED))
def test_a_frame_with_types_states_them(kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fp.protect(STATED[kind](), budget=1)


def test_the_schemas_of_persons_tables_are_shown_by_table() -> None:
    with pytest.warns(fp.ReadOffData) as shown:
        fp.protect(
            {"people": ROWS, "cars": [{"age": 1}]},
            unit="age",
            rows_per_unit=1,
            budget=1,
            schema={"cars": {"age": "int64"}},
        )
    assert f"schema={{'people': {SHOWN.removeprefix('schema=')}}}" in str(shown[0].message)
    with pytest.warns(fp.ReadOffData) as shown:
        fp.protect(ROWS, unit="age", rows_per_unit=1, budget=1, name="p")
    assert SHOWN in str(shown[0].message)


def test_the_ledger_says_that_a_schema_was_read_off_the_data(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "x.ledger")
    fp.protect(csv, budget=1, ledger=place)
    fp.protect(ROWS, budget=1, ledger=place, name="rows", schema=TYPES)
    main(["ledger", "show", place])
    said = capsys.readouterr().out.splitlines()
    assert ["schema read off the data" in line for line in said if "root " in line] == [True, False]


# ── one odd cell ─────────────────────────────────────────────────────────────────────

ODD = {
    Type.BOOL: (True, ["yes", 1, 0.5]),
    Type.INT64: (37, ["37", 37.5, True, 2**64, -(2**63) - 1, date(2024, 1, 1), b"x", [1], object()]),
    Type.FLOAT64: (0.5, ["0.5", True, 10**400, [0.5]]),
    Type.STRING: ("a", [1, b"a", "\ud800", ["a"]]),
    Type.DATE: (date(2024, 1, 1), ["2024-01-01", 5, pd.Timestamp(2024, 1, 1)]),
    Type.TIMESTAMP: (
        pd.Timestamp(2024, 1, 1).to_pydatetime(),
        ["2024-01-01", date(2024, 1, 1), pd.Timestamp("2024-01-01", tz="UTC").to_pydatetime()],
    ),
}
# Of no type, but close to one: each of them was read as a value, or refused the whole table.
CLOSE = [
    Decimal("sNaN"), np.array([1, 2]), np.array([5]), np.array(5), np.timedelta64(5, "ns"), np.void(b"x"),
    pd.Timestamp("9999-12-31").as_unit("s") + pd.Timedelta(days=1), np.datetime64("20000-01-01", "s"),
    np.datetime64(2**62, "s"), np.datetime64(-(2**62), "Y"), np.datetime64("0000-12-31", "us"),
]  # fmt: skip
ENGINES = {"duckdb": DuckDB, "reference": ReferenceEngine}


def in_categories(values: list[Any]) -> Any:
    """Objects as categories, if pandas can: they are hashed, and none is missing."""
    different = list({id(value): value for value in values}.values())
    codes = [next(i for i, one in enumerate(different) if one is value) for value in values]
    return pd.DataFrame({"x": pd.Categorical.from_codes(codes, dtype=categories(different))})


@pytest.mark.parametrize("kind", ["dicts", "pandas", "polars", "categories"])
@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("type_", sorted(ODD, key=lambda t: t.value))
def test_a_value_of_another_type_is_null_and_changes_no_other(type_: Type, engine: str, kind: str) -> None:
    value, odd = ODD[type_]
    made = ENGINES[engine]()
    for number, one in enumerate(odd):
        if kind == "categories" and (isinstance(one, list) or one == value):
            continue
        values = [value, one, value]
        source: Any = [{"x": v} for v in values]
        if kind == "pandas":
            source = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        if kind == "categories":
            source = in_categories(values)
        if kind == "polars":
            source = pl.DataFrame({"x": pl.Series(values, dtype=pl.Object)})
        assert made.add_root(f"t{number}", source, {"x": type_}) == Schema.of({"x": type_})
        found = sorted(made.rows(RootTable(f"t{number}")).rows, key=repr)
        assert found == sorted([(value,), (None,), (value,)], key=repr), one
    made.close()


@pytest.mark.parametrize("kind", ["dicts", "pandas"])
@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("type_", sorted(ODD, key=lambda t: t.value))
def test_what_cannot_be_converted_is_null(type_: Type, engine: str, kind: str) -> None:
    value, _ = ODD[type_]
    made = ENGINES[engine]()
    values = np.empty(len(CLOSE) + 1, dtype=object)
    for number, one in enumerate([value, *CLOSE]):
        values[number] = one
    source = [{"x": v} for v in values] if kind == "dicts" else pd.DataFrame({"x": pd.Series(values)})
    made.add_root("t", source, {"x": type_})
    assert Counter(made.rows(RootTable("t")).rows) == {(value,): 1, (None,): len(CLOSE)}
    made.close()


SPOKEN = ["__eq__", "__ne__", "__hash__", "__int__", "__float__", "__index__", "__bool__", "__str__",
          "__repr__", "__class__", "item", "astype", "to_pydatetime"]  # fmt: skip
METHODS = st.dictionaries(st.sampled_from(SPOKEN), st.sampled_from(["raises", "lies"]))
MODULES = st.sampled_from(["numpy", "pandas", "pandas.core", "decimal", "uuid", "datetime", 5])
NAMES = st.sampled_from(["Timestamp", "datetime64", "int64", "Decimal", "UUID", "int"])


def hostile(lie: Any, methods: dict[str, str], module: Any, name: str, base: type, likeness: bool) -> Any:
    """An object of no type of ours that says it is one; what it is asked raises, or is a lie."""

    def answer(how: str, *_: object) -> Any:
        if how == "raises":
            raise ArithmeticError("look at me")
        return lie

    spoken: dict[str, Any] = {m: lambda *_, how=how: answer(how) for m, how in methods.items()}
    if "__class__" in methods:
        how = methods["__class__"]
        spoken["__class__"] = property(lambda self: type(answer(how)))
    like = {"__eq__": lambda a, b: True, "__hash__": lambda a: hash(type(lie))} if likeness else {}
    # What pandas' Timestamp says is believed, if it is of a type: such an object may say nothing of it.
    if (module, name) in (("pandas", "Timestamp"), ("pandas.core", "Timestamp")):
        spoken.pop("to_pydatetime", None)
    return type("Meta", (type,), like)(name, (base,), {**spoken, "__module__": module})()


@given(
    type_=st.sampled_from(sorted(ODD, key=lambda t: t.value)), methods=METHODS, module=MODULES, name=NAMES,
    base=st.sampled_from([object, int, float, str, Decimal]), likeness=st.booleans(),
)  # fmt: skip
def test_an_object_that_lies_about_itself_is_null(
    type_: Type, methods: dict[str, str], module: Any, name: str, base: type, likeness: bool
) -> None:
    value, _ = ODD[type_]
    one = hostile(value, methods, module, name, base, likeness)
    assert column("x", [value, one, value], type_) == (type_, [value, None, value])


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_values_of_numpy_and_pandas_are_values(engine: str) -> None:
    made = ENGINES[engine]()
    values = {
        "i": [np.int64(5), None, pd.NA], "f": [np.float32(0.5), float("nan"), 2],
        "b": [np.bool_(True), None, False],
        "t": [pd.Timestamp(2024, 1, 1), pd.NaT, np.datetime64("2024-01-01T00:00:00.000000005")],
    }  # fmt: skip
    frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in values.items()})
    types = (Type.INT64, Type.FLOAT64, Type.BOOL, Type.TIMESTAMP)
    assert made.add_root("t", frame).types() == types
    day = pd.Timestamp(2024, 1, 1).to_pydatetime()
    found = set(made.rows(RootTable("t")).rows)
    assert found == {(5, 0.5, True, day), (None, None, None, None), (None, 2.0, False, day)}
    made.close()


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_schema_that_no_value_fits_is_the_owners_mistake(engine: str, csv: Path) -> None:
    for source in ([{"age": "x"}], pd.DataFrame({"age": pd.Series(["x"], dtype=object)})):
        with pytest.raises(fp.BadData, match="is not int64, as the schema says"):
            fp.protect(source, budget=1, schema={"age": "int64"}, engine=engine)
    with pytest.raises(fp.BadData, match="is not date, as the schema says"):
        fp.protect(csv, budget=1, schema={"age": "date"}, engine=engine)


# ── dialects ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_dialect_says_how_csv_is_written(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("day;n\n25/12/2020;'1'\n12/25/2020;2\n")
    dialect = fp.Dialect(delimiter=";", quote="'", dates="%d/%m/%Y")
    schema = {"day": "date", "n": "int64"}
    data = fp.protect(path, budget=10**6, schema=schema, dialect=dialect, engine=engine)
    assert data.where(lambda x: x.day.is_null()).noisy_count(1000).value == 1
    assert data.where(lambda x: x.day.month() == 12).noisy_count(1000).value == 1
    tables = fp.protect(
        {"a": path, "b": [{"n": 1}]}, unit="n", rows_per_unit=1, budget=10**6, engine=engine,
        schema={"a": schema, "b": {"n": "int64"}}, dialect={"a": dialect},
    )  # fmt: skip
    assert tables["a"].noisy_count(1000).value == 2
    with pytest.raises(fp.ProgramError, match="dialect"):
        fp.protect(path, budget=1, dialect=";")
    with pytest.raises(fp.ProgramError, match="unknown table"):
        fp.protect({"a": path}, unit="n", rows_per_unit=1, budget=1, dialect={"b": dialect})


# ── a server does not guess ──────────────────────────────────────────────────────────


def test_a_server_refuses_to_read_a_schema_off_the_data(tmp_path: Path, csv: Path) -> None:
    for source in (str(csv), objects()):
        with pytest.raises(fp.BadData, match=r'schema = \{ "age" = "int64", "name" = "string" \}'):
            serve(tmp_path, people(1, source)).__enter__()
    with serve(tmp_path, people(1, str(csv), schema={"age": Type.INT64})) as live:
        assert live.connect()["people"].schema == {"age": "int64"}


def test_a_data_set_that_is_added_has_its_schema_written_down(
    csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = str(tmp_path / "fpinq.toml")
    more = [
        "--budget",
        "1",
        "--rows-at-most",
        "9",
        "--dialect",
        "header=true",
        "--dialect",
        "dates=%d/%m/%Y",
        "--config",
        config,
    ]
    assert main(["dataset", "add", "people", "people.csv", *more]) == 0
    assert 'schema = { "age" = "int64", "name" = "string" } was read off the data' in capsys.readouterr().out
    from fpinq.server.config import load

    loaded = load(config)
    table = loaded.data_sets["people"].tables["people"]
    assert table.schema == {"age": Type.INT64, "name": Type.STRING}
    assert table.dialect == fp.Dialect(dates="%d/%m/%Y")
    House(loaded).close()


@pytest.mark.parametrize("wrong", [{"delimiter": ",,"}, {"delimeter": ","}, ",", {"header": "yes"}])
def test_a_dialect_of_the_configuration_is_checked(tmp_path: Path, wrong: Any) -> None:
    from fpinq.server.config import parse

    with pytest.raises(fp.ProgramError, match=r"datasets\.a\.dialect"):
        parse({"datasets": {"a": {"path": "a.csv", "budget": 1, "dialect": wrong}}}, tmp_path)
