"""connect: lost replies, slow servers, threads and forks."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.client import remote
from fpinq.client.remote import Names, waiting
from fpinq.model.actions import AskScale, Assign
from fpinq.model.errors import KernelViolation, ProgramError
from fpinq.model.expressions import Type
from fpinq.model.transformations import Distinct
from fpinq.runtime.refusals import FAILURES, error_of, fields_of
from fpinq.server import DataSet, TableConfig
from server.live import Live, people, serve


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with serve(tmp_path, people(1)) as found:
        yield found


def whole_request(client: socket.socket) -> bytes:
    """The next request, head and body, however many pieces it comes in; nothing if there is none."""
    request = client.recv(10**6)
    while request and len(request) < request.find(b"\r\n\r\n") + 4 + body_length(request):
        request += client.recv(10**6)
    return request


def body_length(request: bytes) -> int:
    lengths = [line[16:] for line in request.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
    return int(lengths[0]) if lengths else 0


@contextmanager
def between(port: int, tamper: Callable[[int, bytes], bytes | None]) -> Iterator[str]:
    """A proxy: tamper sees the number of each reply and its bytes, and may change it, or lose it (None)."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    stopped = threading.Event()
    replies = iter(range(10**6))

    def pump(client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            client.settimeout(10)
            server.settimeout(10)
            try:
                while request := whole_request(client):
                    server.sendall(request)
                    reply = server.recv(10**6)
                    changed = tamper(next(replies), reply)
                    if changed is None:
                        return
                    client.sendall(changed)
            except OSError:
                pass

    def accept() -> None:
        while not stopped.is_set():
            try:
                client, _ = listening.accept()
            except TimeoutError:
                continue
            threading.Thread(target=pump, args=(client,), daemon=True).start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stopped.set()
        accepting.join()
        listening.close()


def test_a_lost_reply_is_asked_for_again_and_charged_once(live: Live) -> None:
    lost = {2, 3, 5, 6, 7}  # after the catalog and the session: replies to actions
    with between(live.port, lambda n, reply: None if n in lost else reply) as url:
        table = fp.connect(url, live.token())["people"]
        table.noisy_count(0.1)
        table.noisy_count(0.1)
    assert live.left() == Fraction(8, 10)


def test_a_reply_that_never_comes_is_unavailable_and_a_retry_is_free(live: Live) -> None:
    with between(live.port, lambda n, reply: reply if n < 2 else None) as url:
        table = fp.connect(url, live.token(), retries=2)["people"]
        with pytest.raises(fp.Unavailable, match="once at the most"):
            table.noisy_count(0.1)
    assert live.left() == Fraction(9, 10)


def test_a_slow_reply_is_waited_for_under_its_id(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ATTEMPT_SECONDS", 0.3)

    def slow(number: int, reply: bytes) -> bytes:
        if number == 2:
            time.sleep(1)
        return reply

    with between(live.port, slow) as url:
        table = fp.connect(url, live.token(), retries=0)["people"]
        table.noisy_count(0.1)
    assert live.left() == Fraction(9, 10)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(fp.Unavailable):
        fp.connect(f"http://127.0.0.1:{port}", "fpq_x", retries=1)


def test_what_is_not_fpinq_s_reply_is_unavailable(live: Live) -> None:
    page = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>"
    with (
        between(live.port, lambda n, reply: page) as url,
        pytest.raises(fp.Unavailable, match="status 502"),
    ):
        fp.connect(url, live.token())


def test_the_token_may_be_in_the_environment(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FPINQ_TOKEN", raising=False)
    with pytest.raises(fp.NotAuthenticated):
        fp.connect(live.url)
    monkeypatch.setenv("FPINQ_TOKEN", live.token())
    assert list(fp.connect(live.url)) == ["people"]


@pytest.mark.parametrize("url", ["", "people", "ftp://x", "http://", "127.0.0.1:8000"])
def test_an_address_that_is_none_is_the_program_s_mistake(url: str) -> None:
    with pytest.raises(fp.ProgramError):
        fp.connect(url, "fpq_x")


@pytest.mark.parametrize("token", ["a b", "a\r\nX: y", "é"])
def test_a_token_cannot_smuggle_headers(live: Live, token: str) -> None:
    with pytest.raises(fp.NotAuthenticated):
        fp.connect(live.url, token)


def test_an_unknown_data_set_is_told_with_the_nearest_name(live: Live) -> None:
    catalog = live.connect()
    with pytest.raises(fp.UnknownDataSet, match="did you mean 'people'"):
        catalog["peopel"]
    assert repr(catalog) == "<1 data set: people>"
    assert len(catalog) == 1


def test_a_catalog_shows_itself_in_a_notebook(live: Live) -> None:
    shown = live.connect()._repr_html_()
    for words in ("people", "age int64", "budget", "unit"):
        assert words in shown


def test_metadata_and_units_come_with_the_catalog(tmp_path: Path) -> None:
    known = {"age": {"bounds": [0, 110]}, "gender": {"keys": [0, 1]}}
    rows = [{"id": i % 5, "age": 30, "gender": i % 2} for i in range(10)]
    visits = [{"id": i % 5, "cost": i} for i in range(20)]
    tables = {
        "people": TableConfig(rows, rows_per_unit=2, columns=known),
        "visits": TableConfig(visits, rows_per_unit=4),
    }
    with serve(tmp_path, {"clinic": DataSet("clinic", Fraction(10**12), tables, "id")}) as live:
        clinic = live.connect()["clinic"]
        assert list(clinic) == ["people", "visits"]
        assert clinic["people"].scaling_factor == 2
        answers = clinic["people"].query(10**6, fp.average(lambda x: x.age), by=lambda x: x.gender)
        assert [round(answer.value) for answer in answers.values()] == [30, 30]
        joined = clinic["people"].join(clinic["visits"], on="id")
        assert joined.scaling_factor == 8


def test_threads_share_a_connection_and_its_session(live: Live) -> None:
    table = live.connect()["people"]

    def ask(i: int) -> int:
        part = table.where(lambda x: x.age > i)
        part.noisy_count("1/100")
        return part.scaling_factor

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(40))) == [1] * 40
    assert live.left() == Fraction(6, 10)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_does_not_share_connections(live: Live) -> None:
    table = live.connect()["people"]
    assert table.remaining == 1
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if all(table.remaining <= 1 for _ in range(20)) else 1)  # type: ignore[operator]
        except BaseException:
            os._exit(2)
    for _ in range(20):
        assert table.remaining == 1
    assert os.waitpid(child, 0)[1] == 0


def test_names_of_forgotten_tables_are_used_again(live: Live) -> None:
    table = live.connect()["people"]
    for i in range(50):
        table.where(lambda x: x.age > i)  # noqa: B023 - called at once
    kept = table.where(lambda x: x.age > 3)
    assert kept.scaling_factor == 1
    system = table.facts.system
    assert isinstance(system, remote.RemoteSystem)
    session = system._opened()
    environment = live.house.ledger.configuration(session, "alice").environment
    assert len(environment) < 10


def test_names_are_kept_apart_from_data_sets_and_bound_when_the_server_has() -> None:
    names = Names()
    sent, fresh = names.translate(Assign("t1", Distinct(), ("people",)))
    assert sent == Assign("$1", Distinct(), ("people",))
    assert names.translate(AskScale("t1"))[0] == AskScale("t1")
    names.bind(fresh)
    assert names.translate(AskScale("t1"))[0] == AskScale("$1")
    names.drop("t1")
    assert names.translate(Assign("t2", Distinct(), ("people",)))[0] == sent


@pytest.mark.parametrize("type_", [t for t in FAILURES if t is not KernelViolation], ids=lambda t: t.__name__)
def test_every_code_comes_back_as_its_class(type_: type[Exception]) -> None:
    error = error_of(FAILURES[type_].code, "why", {"column": "a", "known": ["b"]})
    assert type(error) is type_
    assert str(error) == "why"
    assert vars(error) == {"column": "a", "known": ("b",)}


def test_errors_keep_their_fields(live: Live) -> None:
    system = live.connect()["people"].facts.system
    assert system is not None
    from fpinq.model.expressions import Column
    from fpinq.model.transformations import Where

    with pytest.raises(fp.UnknownColumn) as refused:
        system.act(Assign("t", Where(Column("agee")), ("people",)))
    assert (refused.value.column, refused.value.known) == ("agee", ("age", "gender", "name"))
    assert fields_of(refused.value) == {"column": "agee", "known": ("age", "gender", "name")}


def test_a_long_query_shows_how_long_it_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "SHOW_PROGRESS_AFTER_SECONDS", 0.01)
    with waiting(True):
        time.sleep(0.8)
    assert "waiting for the answer" in capsys.readouterr().err
    with waiting(False):
        pass
    assert capsys.readouterr().err == ""


def test_a_schema_that_python_states_in_names_of_types_failed_in_the_owner_s_log(tmp_path: Path) -> None:
    table = TableConfig([{"age": 1}, {"age": 2}], schema={"age": "int64"})
    assert table == TableConfig([{"age": 1}, {"age": 2}], schema={"age": Type.INT64})
    with serve(tmp_path, {"ages": DataSet("ages", Fraction(1), {"ages": table})}) as live:
        assert live.connect()["ages"].noisy_count(1).charged == 1
    for schema in ({"age": "int"}, {"age": 64}, {"age": Type.STRINGS}, ["age"]):
        with pytest.raises(fp.ProgramError, match="schema"):
            TableConfig([{"age": 1}], schema=schema)


def test_a_data_set_grows_by_blocks_and_a_query_of_all_charges_each(tmp_path: Path) -> None:
    later = TableConfig([{"age": 99, "gender": 1, "name": "late"}])
    data_sets = {**people(1), "later": DataSet("later", Fraction(2), {"later": later}, block_of="people")}
    with serve(tmp_path, data_sets) as live:
        catalog = live.connect()
        everybody = catalog["people"]
        assert everybody.price(1) == {"people": 1, "later": 1}
        everybody.noisy_count(Fraction(1, 2))
        assert (live.left("people"), live.left("later")) == (Fraction(1, 2), Fraction(3, 2))
        catalog["later"].noisy_count(1)
        assert (live.left("people"), live.left("later")) == (Fraction(1, 2), Fraction(1, 2))


ROW = {"age": 99, "gender": 1, "name": "late"}


@pytest.mark.parametrize(
    ("row", "settings", "why"),
    [
        (
            {"age": 99, "gender": 1},
            {},
            r"columns are \(age int64, gender int64\), not \(age int64, .*string\)",
        ),
        ({**ROW, "age": 99.5}, {}, r"columns are \(age float64, .*\), not \(age int64, .*\)"),
        (ROW, {"unit": "name"}, "unit is name, not a row"),
        (ROW, {"engine": "reference"}, "engine is reference, not duckdb"),
    ],
)
def test_a_block_unlike_its_base_is_refused_before_it_is_in_the_ledger(
    tmp_path: Path, row: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    later = TableConfig([row], rows_per_unit=1 if settings.get("unit") else None)
    wrong = DataSet("later", Fraction(2), {"later": later}, block_of="people", **settings)
    with serve(tmp_path, people(1)) as live:
        with pytest.raises(ProgramError, match=f"datasets.later cannot be a block of 'people': its {why}"):
            live.house.add(wrong)
        assert list(live.house.ledger.roots()) == ["people"]
        assert live.connect()["people"].remaining == 1


def test_a_block_of_persons_has_the_tables_of_its_base(tmp_path: Path) -> None:
    row = TableConfig([{"id": 1, "age": 9}], rows_per_unit=1)
    base = DataSet("clinic", Fraction(1), {"patients": row, "visits": row}, unit="id")
    later = TableConfig([{"id": 2, "age": 9}], rows_per_unit=1)
    other = DataSet("later", Fraction(1), {"stays": later, "patients": later}, unit="id", block_of="clinic")
    with pytest.raises(ProgramError, match="tables are stays, patients, not patients, visits"):
        serve(tmp_path, {"clinic": base, "later": other}).__enter__()


def test_a_proxy_s_page_is_not_the_last_word(live: Live) -> None:
    page = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>"
    with between(live.port, lambda n, reply: page if n in (2, 3) else reply) as url:
        fp.connect(url, live.token())["people"].noisy_count(0.1)
    assert live.left() == Fraction(9, 10)


def test_the_tables_of_a_block_are_found_by_their_names(tmp_path: Path) -> None:
    def tables(*names: str) -> dict[str, TableConfig]:
        rows = {"p": [{"id": 1, "age": 30}], "v": [{"id": 1, "day": 5}, {"id": 1, "day": 6}]}
        return {name: TableConfig(rows[name], rows_per_unit=2) for name in names}

    later = {
        name: TableConfig([{**row, "id": 2} for row in table.source], rows_per_unit=2)
        for name, table in tables("v", "p").items()
    }
    data_sets = {
        "clinic": DataSet("clinic", Fraction(10**9), tables("p", "v"), unit="id"),
        "later": DataSet("later", Fraction(10**9), later, unit="id", block_of="clinic"),
    }
    with serve(tmp_path, data_sets) as live:
        clinic = live.connect()["clinic"]
        assert round(clinic["v"].noisy_count(1000).value) == 4
        assert round(clinic["p"].noisy_sum(1000, "age", bounds=(0, 100)).value) == 60
