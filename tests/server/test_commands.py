"""The owner's commands, the configuration, and a question from the shell."""

import json
import re
import tomllib
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fpinq.cli.datasets import without
from fpinq.cli.main import main
from fpinq.cli.serve import application
from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Type
from fpinq.runtime.refusals import NotAuthenticated
from fpinq.server import load
from fpinq.server.config import parse, seconds
from fpinq.server.house import House
from fpinq.server.tokens import Tokens
from server.live import Live, people, serve

CSV = "age,gender\n" + "".join(f"{20 + i % 50},{i % 2}\n" for i in range(100))


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "people.csv").write_text(CSV)
    return str(tmp_path / "fpinq.toml")


def add(config: str, *more: str) -> int:
    return added(config, "people", "people.csv", "--budget", "1", *more)


def added(config: str, name: str, path: str, *more: str) -> int:
    return main(["dataset", "add", name, path, "--rows-at-most", "1000", "--config", config, *more])


def test_a_data_set_is_added_to_the_configuration(config: str) -> None:
    facts = [
        "--bounds",
        "age=0:110",
        "--keys",
        "gender=0,1",
        "--schema",
        "age=int64",
        "--schema",
        "gender=int64",
    ]
    assert add(config, *facts, "--cap", "alice=0.5", "--cap", "*=0.1") == 0
    found = load(config).data_sets["people"]
    assert (found.budget, found.engine, found.unit) == (1, "duckdb", None)
    assert found.caps == {"alice": Fraction(1, 2), "*": Fraction(1, 10)}
    assert found.tables["people"].columns == {"age": {"bounds": [0, 110]}, "gender": {"keys": [0, 1]}}
    assert found.tables["people"].schema == {"age": Type.INT64, "gender": Type.INT64}
    house = House(load(config))
    assert house.data_set("people")["tables"][0]["columns"]["age"] == {"bounds": [0, 110]}
    house.close()


def test_a_data_set_is_not_added_twice_and_a_wrong_one_not_at_all(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(config) == 0
    before = Path(config).read_text()
    assert add(config) == 2
    assert "already" in capsys.readouterr().err
    assert added(config, "x", "y.csv", "--budget", "-1") == 2
    assert added(config, "a b", "y.csv", "--budget", "1") == 2
    assert added(config, "x", "y.csv", "--budget", "1", "--cap", "alice") == 2
    assert Path(config).read_text() == before


def test_hostile_texts_stay_texts_in_the_configuration(config: str) -> None:
    hostile = 'n"]\n[datasets.x]\x7f\N{GRINNING FACE}'
    (Path(config).parent / "people.csv").write_text('"a""b\\",name\n1,x\n')
    assert add(config, "--keys", f"name=0,{hostile}", "--unit", 'a"b\\', "--rows-per-unit", "2") == 0
    found = load(config)
    assert list(found.data_sets) == ["people"]
    assert found.data_sets["people"].unit == 'a"b\\'
    assert found.data_sets["people"].tables["people"].columns == {"name": {"keys": ["0", hostile]}}
    House(found).close()


def test_keys_are_written_as_values_of_their_columns(config: str) -> None:
    (Path(config).parent / "people.csv").write_text("day,well,code\n2024-02-29,true,a\n")
    keys = ["--keys", "day=2024-02-29,2024-03-01", "--keys", "well=true,false", "--keys", "code=1,true"]
    assert add(config, *keys) == 0
    found = load(config)
    assert found.data_sets["people"].tables["people"].columns == {
        "day": {"keys": [date(2024, 2, 29), date(2024, 3, 1)]},
        "well": {"keys": [True, False]},
        "code": {"keys": ["1", "true"]},
    }
    House(found).close()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["--bounds", "age=0-1"], "write age=LOW:HIGH"),
        (["--bounds", "age=9:1"], "bounds are reversed"),
        (["--bounds", "age=a:b"], "no number"),
        (["--bounds", "agee=0:1"], "unknown column 'agee'; did you mean 'age'?"),
        (["--keys", "gender=a,b"], "'a' is no int64"),
        (["--keys", "gender=0,0"], "twice"),
        (["--unit", "id", "--rows-per-unit", "1"], "no column 'id'"),
        (["--schema", "aeg=int64"], "aeg"),
    ],
)
def test_what_the_server_would_refuse_is_not_added(
    config: str, wrong: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(config, *wrong) == 2
    assert says in capsys.readouterr().err
    assert not Path(config).exists()


def test_a_missing_file_is_not_added(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert added(config, "x", "y.csv", "--budget", "1") == 2
    assert "no such file" in capsys.readouterr().err
    assert not Path(config).exists()


def test_listing_makes_no_ledger_and_keeps_its_columns_apart(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(config).write_text(
        "[datasets.people]\npath = 'people.csv'\nrows_at_most = 1000\n"
        "budget = '16133333333333333/50000000000000000'\n"
    )
    assert main(["dataset", "list", "--config", config]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split() for line in shown] == [
        ["name", "budget", "left", "state", "unit"],
        ["people", "0.322666", "0.322666", "open", "a", "row"],
    ]
    assert not Path(load(config).ledger).exists()


def test_what_was_never_served_cannot_be_frozen_yet(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    add(config)
    assert main(["dataset", "freeze", "people", "--config", config]) == 2
    assert "'people' is not in the ledger yet: start the server once" in capsys.readouterr().err
    assert not Path(load(config).ledger).exists()


def test_tokens_are_created_listed_and_revoked(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    add(config)
    capsys.readouterr()
    assert main(["token", "create", "alice", "--expires", "1h", "--config", config]) == 0
    token = capsys.readouterr().out.strip()
    tokens = Tokens(load(config).tokens)
    assert tokens.bearer(f"Bearer {token}").role == "analyst"
    assert main(["token", "create", "olga", "--role", "owner", "--expires", "never", "--config", config]) == 0
    capsys.readouterr()
    assert main(["token", "list", "--config", config]) == 0
    shown = capsys.readouterr().out
    assert "alice" in shown
    assert "never ends" in shown
    assert token.split("_")[2] not in shown
    assert main(["token", "revoke", token.split("_")[1], "--config", config]) == 0
    with pytest.raises(ProgramError):
        tokens.bearer(f"Bearer {token}")
    assert main(["token", "revoke", "nobody", "--config", config]) == 2


def test_list_and_freeze(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    add(config)
    House(load(config)).close()
    assert main(["dataset", "freeze", "people", "--config", config]) == 0
    assert main(["dataset", "list", "--config", config]) == 0
    assert "frozen" in capsys.readouterr().out
    assert main(["dataset", "unfreeze", "people", "--config", config]) == 0
    assert main(["dataset", "freeze", "poeple", "--config", config]) == 2


@pytest.mark.parametrize("said", ["", " ", "250"])
def test_a_quantum_that_says_nothing_is_not_taken_for_one_that_was_not_said(
    config: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """As "$QUANTUM" that is not set: replies left at once."""
    for left in ("FPINQ_CONFIG", "FPINQ_QUANTUM", "FPINQ_WORKERS"):  # in the environment, for workers
        monkeypatch.setenv(left, "")
    add(config)
    assert main(["serve", "--config", config, "--port", "0", "--quantum", said]) == 2
    assert "is not a time" in capsys.readouterr().err


def test_the_application_of_a_worker_comes_from_the_configuration(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(config)
    monkeypatch.setenv("FPINQ_CONFIG", config)
    monkeypatch.setenv("FPINQ_QUANTUM", "250ms")
    house = application().state.house
    assert house.config.quantum_seconds == Fraction(1, 4)
    house.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("250ms", Fraction(1, 4)), ("2s", 2), ("1.5s", Fraction(3, 2)), ("90d", 7776000), ("0", 0), ("2m", 120)],
)
def test_times(text: str, expected: Fraction) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "250", "0.5", 250, True, "-1s", "1w", "s", "1e3s", "NaN", "9" * 20])
def test_what_is_no_time(text: object) -> None:
    with pytest.raises(ProgramError):
        seconds(text)


WRONG: dict[str, dict[str, Any]] = {
    "an unknown setting": {"ledgre": "x"},
    "an unknown limit": {"limits": {"bodybytes": 1}},
    "a limit of nothing": {"limits": {"body_bytes": 0}},
    "a limit that is true": {"limits": {"body_bytes": True}},
    "no budget": {"datasets": {"a": {"path": "a.csv"}}},
    "no path": {"datasets": {"a": {"budget": 1}}},
    "an endless budget": {"datasets": {"a": {"path": "a.csv", "budget": float("inf")}}},
    "an unknown engine": {"datasets": {"a": {"path": "a.csv", "budget": 1, "engine": "excel"}}},
    "an unknown type": {"datasets": {"a": {"path": "a.csv", "budget": 1, "schema": {"x": "int"}}}},
    "rows without a unit": {"datasets": {"a": {"path": "a.csv", "budget": 1, "rows_per_unit": 2}}},
    "a unit without rows": {"datasets": {"a": {"path": "a.csv", "budget": 1, "unit": "id"}}},
    "tables without a unit": {"datasets": {"a": {"tables": {"b": {"path": "b.csv"}}, "budget": 1}}},
    "a path and tables": {"datasets": {"a": {"path": "x", "unit": "id", "tables": {}, "budget": 1}}},
    "an unknown fact": {"datasets": {"a": {"path": "a.csv", "budget": 1, "columns": {"x": {"bound": 1}}}}},
    "a number for a table": {"datasets": {"a": 1}},
    "tables that are none": {"datasets": {"a": {"unit": "id", "tables": {}, "budget": 1}}},
    "no name": {"datasets": {"": {"path": "a.csv", "budget": 1}}},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_configuration_is_refused_with_a_reason(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ProgramError):
        parse(WRONG[wrong], tmp_path)


SAYS = [
    ({"budget": True}, r"datasets\.a\.budget: a budget must be"),
    ({"caps": {"alice": True}}, r"datasets\.a\.caps\.alice: a budget must be"),
    ({"path": []}, r"datasets\.a\.path"),
    ({"schema": {"age": [1]}}, r"datasets\.a\.schema\.age: unknown type \[1\]"),
    ({"columns": {"gender": {"keys": 1}}}, r"datasets\.a\.columns\.gender: keys are a list"),
    ({"columns": {"gender": {"keys": []}}}, r"datasets\.a\.columns\.gender: keys are a list"),
    ({"columns": {"gender": {"keys": [[0]]}}}, r"datasets\.a\.columns\.gender: keys are a list"),
    ({"columns": {"age": {"bounds": 5}}}, r"datasets\.a\.columns\.age: bounds are a pair"),
    ({"columns": {"age": {"bounds": [1]}}}, r"datasets\.a\.columns\.age: bounds are a pair"),
    ({"columns": {"age": {"bounds": ["0", "1"]}}}, r"datasets\.a\.columns\.age: bounds are a pair"),
    ({"columns": {"age": {"bounds": [0, float("inf")]}}}, r"datasets\.a\.columns\.age: .*finite"),
    ({"columns": {"age": {"bounds": [float("nan"), 1]}}}, r"datasets\.a\.columns\.age: .*finite"),
    ({"columns": {"age": {"bounds": [0, 10**22]}}}, r"datasets\.a\.columns\.age: .*64 bits"),
    ({"columns": {"age": {"bounds": [2, 1]}}}, r"datasets\.a\.columns\.age: bounds are reversed"),
]


@pytest.mark.parametrize(("settings", "says"), SAYS)
def test_a_wrong_setting_is_named_with_its_data_set(
    tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(ProgramError, match=says):
        parse({"datasets": {"a": {"path": "a.csv", "budget": 1, **settings}}}, tmp_path)


@pytest.mark.parametrize(
    "setting", [{"path": "x.csv"}, {"rows_per_unit": 2}, {"schema": {"x": "int64"}}, {"columns": {}}]
)
def test_what_is_said_of_a_table_is_not_ignored_where_there_are_several(
    tmp_path: Path, setting: dict[str, Any]
) -> None:
    tables = {"visits": {"path": "visits.csv", "rows_per_unit": 1}}
    given = {"unit": "id", "budget": 1, "tables": tables, **setting}
    says = f"say {next(iter(setting))} under datasets.clinic.tables.TABLE"
    with pytest.raises(ProgramError, match=says):
        parse({"datasets": {"clinic": given}}, tmp_path)


def test_a_quantum_without_a_unit_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="quantum: 250 is not a time"):
        parse({"quantum": 250}, tmp_path)
    assert parse({"quantum": 0}, tmp_path).quantum_seconds == 0


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"age": {"bounds": [1]}}, "a pair"),
        ({"age": {"bounds": [0, 1e30]}}, "64 bits"),
        ({"name": {"bounds": [0, 1]}}, "it is string"),
        ({"gender": {"keys": ["a"]}}, "expected int64, not string"),
        ({"gender": {"keys": [0, 0]}}, "twice"),
        ({"agee": {"keys": [1]}}, "unknown column 'agee'; did you mean 'age'?"),
    ],
)
def test_metadata_that_does_not_fit_is_found_at_the_start(
    tmp_path: Path, columns: dict[str, Any], says: str
) -> None:
    where = f"datasets.people.columns.{next(iter(columns))}: "
    with (
        pytest.raises(ProgramError, match=f"^{re.escape(where)}.*{re.escape(says)}"),
        serve(tmp_path, people(1, columns=columns)),
    ):
        pass


def test_a_missing_or_broken_configuration_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no configuration"):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= 1")
    with pytest.raises(ProgramError, match="not TOML"):
        load(tmp_path / "bad.toml")


def test_the_example_of_the_operating_page_is_a_configuration(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/operating/server.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    found = parse(tomllib.loads(example), tmp_path)
    assert set(found.data_sets) == {"people", "people-2027", "clinic"}


@pytest.fixture
def live(tmp_path: Path) -> Any:
    with serve(tmp_path, people(10**9)) as found:
        yield found


def ask(live: Live, *arguments: str) -> int:
    return main(["query", *arguments, "--url", live.url, "--token", live.token()])


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["count", "--epsilon", "1000000"], "100 ± 0"),
        (["count", "--where", "x.age > 30", "--where", "x.gender == 1", "--epsilon", "1000000"], "40 ± 0"),
        (["sum", "x.gender", "--bounds", "0", "1", "--epsilon", "1000000"], "50 ± 0"),
        (["count", "--by", "x.gender", "--keys", "0,1", "--epsilon", "1000000"], "0\t50 ± 0\n1\t50 ± 0"),
        (["budget"], "1000000000"),
        (["price", "--epsilon", "1/3"], "1/3"),
    ],
)
def test_one_question_from_the_shell(
    live: Live, capsys: pytest.CaptureFixture[str], asked: list[str], answer: str
) -> None:
    assert ask(live, "people", *asked) == 0
    assert capsys.readouterr().out.strip() == answer


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (["people", "count", "--epsilon", "10000000000"], 3),
        (["people", "count", "--where", "x.agee > 1"], 2),
        (["people", "count", "--where", "__import__('os')"], 2),
        (["people", "count", "--where", "x.age >"], 2),
        (["people", "sum"], 2),
        (["nobody", "count"], 2),
    ],
)
def test_the_exit_code_says_whose_mistake_it_was(live: Live, asked: list[str], code: int) -> None:
    assert ask(live, *asked) == code


def test_a_wrong_token_and_no_server_have_exit_codes_of_their_own(live: Live) -> None:
    assert main(["query", "people", "count", "--url", live.url, "--token", "fpq_x"]) == 4
    assert main(["query", "people", "count", "--url", "http://127.0.0.1:9", "--token", "fpq_x"]) == 6


def test_the_same_file_is_not_added_under_two_names(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It was, and serve then refused."""
    assert add(config) == 0
    (Path(config).parent / "copy.csv").write_text(CSV)
    before = Path(config).read_text()
    assert added(config, "others", "copy.csv", "--budget", "1") == 2
    assert "'others' has the data of 'people'" in capsys.readouterr().err
    assert Path(config).read_text() == before


def test_a_missing_configuration_says_how_to_make_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It pointed at a file of the documentation, which an installed package has not."""
    assert main(["dataset", "list", "--config", str(tmp_path / "none.toml")]) == 2
    assert "fpinq dataset add" in capsys.readouterr().err


def test_a_data_set_is_shown_checked_and_removed(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert add(config, "--bounds", "age=0:110", "--cap", "alice=0.5") == 0
    (Path(config).parent / "later.csv").write_text("age,gender\n7,1\n")
    types = ["--schema", "age=int64", "--schema", "gender=int64"]
    assert added(config, "later", "later.csv", "--budget", "1", "--block-of", "people", *types) == 0
    before = Path(config).read_text()
    capsys.readouterr()
    assert main(["dataset", "show", "people", "--config", config, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["cap of alice"], shown["column age"]) == ("1/2", "int64, bounds [0, 110]")
    assert main(["dataset", "check", "--config", config]) == 0
    assert capsys.readouterr().out == "✓ people\n✓ later\n"
    (Path(config).parent / "later.csv").write_text(CSV)
    assert main(["dataset", "check", "--config", config]) == 2
    assert "✗ later: 'later' has the data of 'people'" in capsys.readouterr().out
    assert main(["dataset", "remove", "later", "--config", config]) == 0
    assert list(load(config).data_sets) == ["people"]
    assert before.startswith(Path(config).read_text().rstrip())
    assert main(["dataset", "remove", "peple", "--config", config]) == 2
    assert "did you mean 'people'" in capsys.readouterr().err


def test_what_is_not_a_section_of_its_own_is_not_removed() -> None:
    with pytest.raises(ProgramError, match="by hand"):
        without('datasets = { a = { path = "x" }, b = { path = "y" } }\n', "a")


def test_a_block_has_the_caps_of_what_it_is_a_block_of(tmp_path: Path) -> None:
    one = {"path": "x.csv", "budget": 1, "rows_at_most": 9}
    written = {
        "people": {**one, "caps": {"alice": "0.5"}},
        "tuesday": {**one, "block_of": "people"},
        "wednesday": {**one, "block_of": "people", "caps": {"bob": "0.1"}},
    }
    found = parse({"datasets": written}, tmp_path).data_sets
    assert found["tuesday"].caps == {"alice": Fraction(1, 2)}
    assert found["wednesday"].caps == {"bob": Fraction(1, 10)}


def test_a_person_in_two_roles_is_not_given_either(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two tokens that were made in the same second, the role was that of either."""
    assert add(config) == 0
    tokens = Tokens(load(config).tokens, lambda: 1_000.0)
    held = {role: tokens.create("ada", role) for role in ("owner", "analyst")}
    assert main(["token", "rotate", "ada", "--config", config]) == 2
    assert "analyst and owner" in capsys.readouterr().err
    assert {tokens.bearer(f"Bearer {token}").role for token in held.values()} == {"owner", "analyst"}
    tokens.revoke(held["owner"].split("_")[1])
    assert tokens.bearer(f"Bearer {tokens.rotate('ada')}").role == "analyst"


def test_a_rotated_token_ends_those_before_it(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert add(config) == 0
    assert main(["token", "create", "ada", "--role", "auditor", "--config", config]) == 0
    assert main(["token", "rotate", "ada", "--config", config]) == 0
    first, second = capsys.readouterr().out.split()[-2:]
    tokens = Tokens(load(config).tokens)
    assert tokens.bearer(f"Bearer {second}").role == "auditor"
    with pytest.raises(NotAuthenticated):
        tokens.bearer(f"Bearer {first}")
    assert main(["token", "revoke", "ada", "--config", config]) == 0
    with pytest.raises(NotAuthenticated):
        tokens.bearer(f"Bearer {second}")
    assert main(["token", "rotate", "bob", "--config", config]) == 2
