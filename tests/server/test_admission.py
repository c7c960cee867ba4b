"""What is refused before the charge, by public numbers alone: ε, work, the queries of a session."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import fpinq as fp
from fpinq.cli.main import main
from fpinq.engines.duckdb.database import Database
from fpinq.engines.postgres.dialect import PostgresDialect
from fpinq.model.actions import Query
from fpinq.model.clamps import Clamp
from fpinq.model.costs import UNITS, Costs
from fpinq.model.domains import IntegerDomain
from fpinq.model.errors import BadData, BadEpsilon, ProgramError
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.notions import Rho
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.queries import (
    Balance,
    Brackets,
    Choice,
    Count,
    CrossMoments,
    Depth,
    Frequencies,
    Lagrange,
    Moments,
    Offset,
    Rank,
    Ranks,
    Several,
    SimpleQuery,
    Sparse,
    Stable,
    Sum,
    Summary,
    Tally,
    Tree,
)
from fpinq.model.semantics import Measure
from fpinq.model.transformations import All, Join, LiteralTable, Partitioning, SelectMany
from fpinq.model.work import TableSize, work_of
from fpinq.runtime.mechanisms import draw
from fpinq.runtime.refusals import TooLarge
from fpinq.server.admission import Admission
from fpinq.server.config import TableConfig, load, parse
from fpinq.server.limits import Limits
from server.live import COUNT, LIFTED, people, serve

LEAST = Fraction(1, 10_000)


def test_no_question_is_free(tmp_path: Path) -> None:
    with serve(tmp_path, people(1)) as live:
        table = live.connect()["people"]
        with pytest.raises(fp.BadEpsilon, match="ε is at least 1/10000 here"):
            table.noisy_count(LEAST - Fraction(1, 10**9))
        assert live.left() == 1
        table.noisy_count(LEAST)
        assert live.left() == 1 - LEAST
        # A public table is nobody's: it may be asked at any ε.
        assert fp.public([{"a": 1}]).noisy_count("1e-9") is not None


@pytest.mark.parametrize("least", ["1/0", 0, -1, "much", True])
def test_the_least_epsilon_is_an_epsilon(least: object) -> None:
    with pytest.raises(BadEpsilon, match="epsilon_at_least"):
        Limits(epsilon_at_least=least)  # type: ignore[arg-type]


def test_the_limits_are_public_and_exact(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), limits={"epsilon_at_least": "1/3"}) as live:
        told = live.send("GET", "/limits").json
        assert told["epsilon_at_least"] == "1/3"
        assert told["work_per_record"] == Limits().work_per_record


def test_a_session_asks_so_many_queries_and_no_more_also_after_a_restart(tmp_path: Path) -> None:
    limits = {"queries_per_session": 3}
    with serve(tmp_path, people(1), limits=limits) as live:
        token = live.token()
        session = live.session(token)
        assert [live.act(session, token, COUNT).status for _ in range(2)] == [200, 200]
        assert (
            live.act(session, token, {**COUNT, "epsilon": "5"}).json["observation"] is not None
        )  # ⊥ is free
    with serve(tmp_path, people(1), limits=limits) as live:
        assert live.act(session, token, COUNT, "third").status == 200
        refused = live.act(session, token, COUNT)
        assert (refused.status, refused.code) == (403, "too_many_queries")
        assert live.left() == 1 - Fraction(3, 10)
        assert live.act(session, token, COUNT, "third").status == 200  # the same request again
        assert live.act(live.session(token), token, COUNT).status == 200


def test_work_is_bounded_by_what_the_engine_that_holds_the_data_takes() -> None:
    text: Expression = Column("s")
    for _ in range(7):
        text = Apply("lower", (text,))
    schema = Schema.of({"s": Type.STRING})
    label = Measure(RootTable("r"), schema, None, (Sum(Clamp(Apply("length", (text,)), 0, 1)),), Fraction(1))

    def asked(costs: Costs) -> None:
        admission = Admission(Limits(), UNITS)
        admission.add("other", {"": TableSize(1, {"s": 65_536})}, UNITS)
        admission.add("r", {"": TableSize(1, {"s": 65_000})}, costs)
        admission.check(label)

    asked(UNITS)
    with pytest.raises(
        TooLarge, match=r"\(max_length\); PostgreSQL takes more for some of it: lower 110 times$"
    ):
        asked(PostgresDialect().costs)


def test_work_beyond_the_limits_is_refused_and_nothing_is_charged(tmp_path: Path) -> None:
    with serve(tmp_path, people(1)) as live:
        table = live.connect()["people"]
        heavy = table.where(lambda x: x.name.upper().lower().upper().lower().upper().lower().upper() == "N1")
        with pytest.raises(fp.FpinqError, match=r"one record could be \d+ units of work.*max_length"):
            heavy.where(lambda x: x.name.upper() == "N").noisy_count(0.1)
        assert live.left() == 1


def test_work_of_thousands_of_digits_is_refused_as_any_other() -> None:
    """Python does not write such numbers down: the refusal failed, and with it everybody's step."""
    schema = Schema.of({"n": Type.INT64})
    each = (("n", Column("n")),)
    plan: Plan = Term(LiteralTable(schema, ((1,),) * 10_000), ())
    for _ in range(5):
        plan = Term(SelectMany((each,) * 10_000, 10_000), (plan,))
    for _ in range(8):
        plan = Term(Join((), (), All(), All(), (("n", Column("l.n")),)), (plan, plan))
    with pytest.raises(TooLarge, match=f"could be more than {10**30} units of work"):
        Admission(Limits(), UNITS).check(Measure(plan, schema, None, (Count(),), Fraction(1)))


def test_a_plan_that_an_engine_would_not_plan_in_time_is_refused(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), limits={"plan_levels": 100}) as live:
        table = live.connect()["people"]
        for _ in range(8):
            table = table.with_columns(lambda x: {"age": x.age % (x.gender + 1)})
        with pytest.raises(fp.FpinqError, match="nests at most 100 levels"):
            table.noisy_count(0.1)
        assert live.left() == 1


def test_how_many_rows_there_can_be_decides_what_may_be_asked(tmp_path: Path) -> None:
    few, many = (people(1, columns={"name": {"max_length": 1_000}}) for _ in range(2))
    (table,) = many["people"].tables.values()
    object.__setattr__(table, "rows_at_most", 10**9)
    for number, data in enumerate((few, many)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve(folder, data) as live:
            asked = live.connect()["people"].where(lambda x: x.name.upper() == "N1")
            if data is few:
                asked.noisy_count(0.1)
            else:
                with pytest.raises(fp.FpinqError, match=r"this could be \d+ units of work.*rows_at_most"):
                    asked.noisy_count(0.1)


def test_data_with_more_rows_than_promised_is_refused_without_saying_how_many(tmp_path: Path) -> None:
    data = people(1)
    (table,) = data["people"].tables.values()
    object.__setattr__(table, "rows_at_most", 99)
    with pytest.raises(BadData, match="more rows than rows_at_most = 99") as refused, serve(tmp_path, data):
        pass
    assert "100" not in str(refused.value)


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_a_data_set_that_was_refused_can_be_added_when_it_is_right(tmp_path: Path, engine: str) -> None:
    with serve(tmp_path, {}) as live:
        for wrong in ({"columns": {"age": {"max_length": 7}}}, {"columns": {"no": {"bounds": [0, 1]}}}):
            with pytest.raises(ProgramError):
                live.house.add(people(1, engine=engine, **wrong)["people"])
        live.house.add(people(1, engine=engine)["people"])
        assert live.connect()["people"].noisy_count(0.1) is not None


def test_a_data_set_of_a_configuration_says_how_many_rows_it_can_have(tmp_path: Path) -> None:
    given = {"path": "a.csv", "budget": 1}
    with pytest.raises(ProgramError, match=r"datasets\.a needs rows_at_most, .* rows_at_most = 1_000_000"):
        parse({"datasets": {"a": given}}, tmp_path)
    found = parse({"datasets": {"a": {**given, "rows_at_most": 7}}}, tmp_path).data_sets["a"].tables["a"]
    assert isinstance(found, TableConfig)
    assert found.rows_at_most == 7


def test_what_is_promised_is_public(tmp_path: Path) -> None:
    with serve(tmp_path, people(1, columns={"name": {"max_length": 7}})) as live:
        (told,) = live.send("GET", "/datasets/people", token=live.token()).json["tables"]
        assert told["rows_at_most"] == 100_000
        assert told["columns"]["name"] == {"max_length": 7}
        assert live.connect()["people"].noisy_count(0.1) is not None


def test_lifted_limits_let_the_same_query_pass(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), limits=LIFTED) as live:
        live.connect()["people"].where(lambda x: x.name.upper() == "N1").noisy_count("1e-9")


def test_no_look_at_the_data_chooses_how_a_server_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One record could tip the choice, and with it the time of all rows."""

    def looked(*_: object) -> bool:
        raise AssertionError("a sample was taken")

    monkeypatch.setattr(Database, "are_rare", looked)
    with serve(tmp_path, people(1), limits=LIFTED) as live:
        live.connect()["people"].limit_per_key(1, lambda x: x.gender).noisy_count(0.1)


def adding(folder: Path, *more: str) -> int:
    config = ["--config", str(folder / "fpinq.toml")]
    return main(["dataset", "add", "people", str(folder / "people.csv"), "--budget", "1", *config, *more])


def test_adding_a_data_set_states_a_promise(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age;name\n" + "37;a\n" * 600)
    stated = ["--schema", "age=int64", "--schema", "name=string", "--dialect", "delimiter=;"]
    assert adding(tmp_path, *stated, "--max-length", "name=40", "--rows-at-most", "7000") == 0
    table = load(tmp_path / "fpinq.toml").data_sets["people"].tables["people"]
    assert table.rows_at_most == 7_000
    assert table.lengths() == {"name": 40}


@pytest.mark.parametrize("rows", [0, 499, 500, 501])
def test_no_promise_is_read_off_the_data(
    rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is said is the same whatever the data, and nothing is written."""
    (tmp_path / "people.csv").write_text("age\n" + "37\n" * rows)
    assert adding(tmp_path) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "such as --rows-at-most 1000000: a public promise" in told.err
    assert not (tmp_path / "fpinq.toml").exists()


CLAMP = Clamp(Column("age"), 0, 4)
ASKED: list[SimpleQuery] = [
    Count(),
    Sum(CLAMP),
    Moments(CLAMP, 2),
    Summary(CLAMP, 2),
    Offset(CLAMP),
    Lagrange(CLAMP),
    Frequencies(CLAMP),
    Tree(CLAMP, 2, 4),
    Rank(CLAMP, Fraction(1, 2)),
    Ranks(CLAMP, (Fraction(1, 3), Fraction(2, 3))),
    Brackets(CLAMP, (Fraction(1, 3),), (2,), (0,)),
    Balance(CLAMP, 4, 1, 1, Fraction(3, 2)),
    Depth(CLAMP, 2),
    CrossMoments((CLAMP, CLAMP), (2, 1), 3, (0, 1)),
    Tally(Column("age"), (Literal.of(1), Literal.of(2))),
    Choice((CLAMP, CLAMP)),
    Sparse(Column("age"), IntegerDomain(0, 4), Fraction(1), 2),
    Stable(Column("age"), IntegerDomain(0, 4), Fraction(1, 100), 1, 3),
]


def test_several_queries_are_limited_as_all_of_them_are() -> None:
    both = Several((Frequencies(CLAMP), Choice((CLAMP, CLAMP))), (1, 1))
    Limits(released_integers=6, candidates=2).check_queries([both], 1)
    for limits in (Limits(released_integers=5), Limits(candidates=1)):
        with pytest.raises(TooLarge):
            limits.check_queries([both], 1)
    with pytest.raises(TooLarge, match="integers"):
        Limits(released_integers=11).check_queries([both], 2)


@pytest.mark.parametrize("query", ASKED, ids=repr)
def test_released_integers_are_limited_by_as_many_as_are_drawn(query: SimpleQuery) -> None:
    # Of keys that are found there are as many as may be shown.
    drawn = draw(query, dict.fromkeys(range(5), 10**6), Fraction(1))
    released = 3 * (len(drawn) if isinstance(drawn, tuple) else 1)
    # One by one, or the same query of three parts.
    for queries, parts_each in (([query] * 3, 1), ([query], 3)):
        Limits(released_integers=released).check_queries(queries, parts_each)
        with pytest.raises(TooLarge, match="integers"):
            Limits(released_integers=released - 1).check_queries(queries, parts_each)


@pytest.mark.parametrize("query", ASKED, ids=repr)
@pytest.mark.parametrize("limit", ["released_integers", "candidates", "fractions"])
def test_the_same_query_of_all_parts_is_limited_as_one_for_each(query: SimpleQuery, limit: str) -> None:
    def is_refused(most: int, queries: list[SimpleQuery], parts_each: int) -> bool:
        try:
            Limits(**{limit: most}).check_queries(queries, parts_each)
        except TooLarge:
            return True
        return False

    for most in range(1, 70):
        for parts in (1, 2, 7):
            assert is_refused(most, [query], parts) == is_refused(most, [query] * parts, 1)


def test_what_one_query_adds_up_of_every_record_is_limited() -> None:
    products = CrossMoments((CLAMP, CLAMP), (1, 1), 1, (0, 0))
    values = Tally(Column("age"), (Literal.of(1), Literal.of(2), Literal.of(3)))
    Limits(sums=7).check_queries([products, values], 1)
    Limits(sums=4).check_queries([products] * 9, 1)  # the same sums, of all parts at once
    Limits(sums=4).check_queries([products], 9)
    Limits(sums=1).check_queries([Sum(CLAMP), Sum(Clamp(Column("age"), 0, 5))], 1)  # in one column
    with pytest.raises(TooLarge, match="adds up at most 2500"):  # a choice has a sum for each candidate
        Limits().check_queries([Choice(tuple(Clamp(Column("age"), 0, i) for i in range(1, 2502)))], 1)
    with pytest.raises(TooLarge, match="adds up at most 6"):
        Limits(sums=6).check_queries([products, values], 1)


@pytest.mark.parametrize("keys", [range(11), tuple(range(11)), tuple(range(0, 22, 2))], ids=repr)
def test_parts_are_limited_however_their_keys_are_written(keys: Any) -> None:
    action = Query("t", Fraction(1), (Count(),), Partitioning(Column("age"), keys))
    Limits(parts=11).check_action(action)
    with pytest.raises(TooLarge, match="at most 10 parts, and this has 11"):
        Limits(parts=10).check_action(action)


@pytest.mark.parametrize("query", ASKED, ids=repr)
def test_the_work_of_the_same_query_of_all_parts_is_that_of_one_for_each(query: SimpleQuery) -> None:
    sizes = {"t": {"t": TableSize.of(Schema.of({"age": Type.INT64}), 10**9, {})}}
    for keys in (range(5), tuple(range(5)), (None, 7)):
        by = Partitioning(Column("age"), keys)
        each = work_of(RootTable("t"), by, (query,) * len(keys), sizes)
        assert work_of(RootTable("t"), by, (query,), sizes) == each


def test_quantiles_at_rho_were_admitted_that_take_twelve_times_as_long() -> None:
    schema, of = Schema.of({"age": Type.INT64}), Clamp(Column("age"), 0, 10**9)
    admission = Admission(Limits(), UNITS)
    admission.add("t", {"t": TableSize.of(schema, 100_000, {})}, UNITS)

    def check(query: SimpleQuery, at: Any) -> None:
        admission.check(Measure(RootTable("t"), schema, None, (query,), at))

    many, fewer = (Ranks(of, tuple(Fraction(i, n) for i in range(1, n))) for n in (1_000, 100))
    check(many, Fraction(1))
    check(fewer, Rho(Fraction(1)))
    with pytest.raises(TooLarge, match="units of work"):
        check(many, Rho(Fraction(1)))
    for at in (Fraction(1), Rho(Fraction(1))):  # noise is what it was
        check(Tree(Clamp(Column("age"), 0, 2**18), 2, 19), at)


def test_every_query_of_the_language_is_limited_here() -> None:
    assert {type(query) for query in ASKED} == set(SimpleQuery.__args__)


def test_too_many_integers_are_refused_before_the_charge(tmp_path: Path) -> None:
    with serve(tmp_path, people(1), limits={"released_integers": 2}) as live:
        table = live.connect()["people"]
        table.noisy_average(Fraction(1, 10), lambda x: x.age, bounds=(0, 100))
        with pytest.raises(fp.FpinqError, match="at most 2 integers"):
            table.noisy_variance(Fraction(1, 10), lambda x: x.age, bounds=(0, 100))
        assert live.left() == 1 - Fraction(1, 10)
