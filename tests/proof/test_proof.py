"""The proof and the code say the same: stability table and accounting, compared by running both."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from fpinq.checker.instances import VISITS, bodies, instances, outer_bodies, outer_joins
from fpinq.checker.mutants import MUTANTS, applied
from fpinq.checker.scope import BINARY, SCHEMA, UNARY
from fpinq.model import plans
from fpinq.model.accounts import Part, Root, Source, Stability
from fpinq.model.actions import AskBudget, AskPrice, AskScale, Assign, Partition, Query
from fpinq.model.errors import KernelViolation, UnboundedStability
from fpinq.model.expressions import Column, Schema
from fpinq.model.notions import Total
from fpinq.model.plans import Flatten, Transformation, shape_of, stability_on
from fpinq.model.queries import Count
from fpinq.model.semantics import Configuration, Told, initial, step
from fpinq.model.transformations import Concat, ConcatAll, Identity, Partitioning
from proof.conftest import PROOF, Coq
from proof.in_coq import shape

SOURCES = sorted(PROOF.glob("*.v"))
AXIOMS = {"sig_not_dec", "sig_forall_dec", "functional_extensionality_dep", "classic"}  # the classical reals'


def test_nothing_is_admitted_and_no_axiom_is_added() -> None:
    assert len(SOURCES) > 10
    for path in SOURCES:
        text = re.sub(r"\(\*.*?\*\)", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|give_up)\b", text)
        assert found == [], path.name


def test_every_file_is_compiled_and_in_the_reading_order() -> None:
    files = {path.stem for path in SOURCES}
    made = re.search(r"^FILES := ((?:.*\\\n)*.*)$", (PROOF / "Makefile").read_text(), flags=re.MULTILINE)
    assert made is not None
    assert set(made[1].replace("\\", "").split()) == files - {"Axioms"}
    listed = re.findall(
        r"^\| `(\w+)\.v` \|", (PROOF / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert set(listed) == files
    assert len(listed) == len(files)


def test_every_name_that_the_proof_s_pages_give_exists() -> None:
    root = PROOF.parent
    written = [*SOURCES, *(root / "src").rglob("*.py"), *(root / "tests").rglob("*.py")]
    words = {word for path in written for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}
    for page in ("docs/model/proof.md", "docs/model/README.md", "proof/README.md"):
        named = re.findall(r"`([a-zA-Z]\w+)`", (root / page).read_text(encoding="utf-8"))
        assert len(named) > 10
        assert set(named) - words - AXIOMS == set(), page


# ── the stability table ──────────────────────────────────────────────────────────────


def declared(stability: Sequence[Stability]) -> str:
    return ",".join(str(c) if isinstance(c, int) else "inf" for c in stability)


def tabled() -> list[tuple[Transformation, tuple[Schema, ...]]]:
    """What has a constant of its own: a concat of three is one concat after the other."""
    known = [*instances(), *outer_joins()]
    return [(t, schemas) for t, schemas in known if not (isinstance(t, ConcatAll) and t.tables > 2)]


def test_a_concat_of_several_charges_what_one_after_the_other_does() -> None:
    roots = {f"r{i}": (SCHEMA, Fraction(9)) for i in range(4)}
    for tables in range(2, 6):
        of = [f"r{i % 4}" for i in range(tables)]
        c = step(initial(roots), Assign("all", ConcatAll(tables), tuple(of))).configuration
        c = step(c, Assign("one", Identity(), (of[0],))).configuration
        for other in of[1:]:
            c = step(c, Assign("one", Concat(), ("one", other))).configuration
        assert c.table("all").sensitivity == c.table("one").sensitivity


def test_the_stability_table_is_the_same(coq: Coq) -> None:
    known = tabled()
    found = coq([f"show_stability {shape(t, schemas)}" for t, schemas in known])
    assert found == [declared(stability_on(t, schemas)) for t, schemas in known]


def test_every_kind_of_constant_is_in_the_table() -> None:
    shapes = " ".join(shape(t, schemas) for t, schemas in tabled())
    for kind in (
        "GroupBy true Rows",
        "GroupBy true Key",
        "GroupBy false Rows",
        "SomeKey",
        "NoKey",
        "WholeRecord",
        "GroupJoin Rows Rows",
        "GroupJoin Rows Key",
        "GroupJoin Key Rows",
        "GroupJoin Key Key",
        "Join (First 1) Key (First 2) Rows",
        "Join (First 2) Rows (First 1) Key",
        "Join All Key Unique Key",
        "OuterJoin (First 1) Rows (First 2) Rows",
        "OuterJoin All Key Unique Rows",
    ):
        assert kind in shapes, kind


def test_a_person_s_plan_has_the_same_constant(coq: Coq) -> None:
    known = [Flatten(body) for body in (*bodies(), *outer_bodies())]
    found = coq([f"show_stability {shape(t, [shape_of(t.body, VISITS)])}" for t in known])
    assert found == [declared(t.stability) for t in known]


WRONG_CONSTANTS = (
    "group_by at 1",
    "union charging one side",
    "except at (1, 0)",
    "join at (R, L)",
    "take at 1",
    "limit_per_key at 1",
    "select_many at 1",
    "group_join at (1, 1)",
    "concat charging the larger side",
    "intersect charging one side",
    "semi-join bounded at (1, 1)",
)


def test_wrong_constants_are_noticed(coq: Coq, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tabled()
    found = coq([f"show_stability {shape(t, schemas)}" for t, schemas in known])
    for name in WRONG_CONSTANTS:
        with applied(next(m for m in MUTANTS if m.name == name)):
            assert found != [declared(stability_on(t, schemas)) for t, schemas in known], name
    monkeypatch.setattr(plans.LimitPerKey, "stability_on", lambda self, _: self.stability)
    assert found != [declared(stability_on(t, schemas)) for t, schemas in known]


# ── the accounting ───────────────────────────────────────────────────────────────────


class Script:
    """One random program, for both sides: commands for Coq, and what the kernel says after each.

    One to four roots, parts of parts, parallel queries, questions in between,
    and variables that are bound again, parts and tables of parts among them.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.roots = random.randint(1, 4)
        self.budgets = [Fraction(random.randint(1, 40), random.choice([1, 2, 3])) for _ in range(self.roots)]
        self.c: Configuration = initial(
            {f"t{i}": (SCHEMA, self.promised(total)) for i, total in enumerate(self.budgets)}
        )
        self.sources: list[Source] = [Root(f"t{i}") for i in range(self.roots)]
        self.tables = list(range(self.roots))
        self.rebound = 0
        self.commands: list[str] = []
        self.expected: list[str] = []
        for _ in range(random.randint(3, 16)):
            self.next()

    def promised(self, total: Fraction) -> Total:
        """What a root's budget of so much is: an ε."""
        return total

    def next(self) -> None:
        match self.random.randint(0, 12):
            case 0 | 1 | 2:
                self.assign(self.random.choice(list(UNARY.values())), 1)
            case 3 | 4:
                self.assign(self.random.choice(list(BINARY.values())), 2)
            case 5 | 6:
                self.partition()
            case 7:
                self.price()
            case 8:
                self.scale()
            case 9:
                self.budget()
            case _:
                self.query()

    def table(self) -> int:
        """Some table, more often than not one of the last."""
        return self.random.choice(self.tables[-6:] if self.random.random() < 0.6 else self.tables)

    def target(self, number: int) -> int:
        """The first of so many variables: new ones, or some that were bound before, but no roots."""
        new = max(self.tables) + 1
        return self.random.randint(self.roots, new) if self.random.random() < 0.3 else new + number % 2

    def bound(self, targets: range) -> None:
        self.rebound += sum(target in self.tables for target in targets)
        self.tables = sorted({*self.tables, *targets})

    def assign(self, transformation: Transformation, arity: int) -> None:
        arguments = [self.table() for _ in range(arity)]
        target, written = self.target(1), shape(transformation, [SCHEMA] * arity)
        self.commands.append(f"Assign_ {target} {written} [{'; '.join(map(str, arguments))}]%nat")
        action = Assign(f"t{target}", transformation, tuple(f"t{a}" for a in arguments))
        try:
            self.c = step(self.c, action).configuration
        except UnboundedStability:
            self.note("refused")
            return
        self.bound(range(target, target + 1))
        self.note("tau")

    def partition(self) -> None:
        table, parts = self.table(), self.random.choice([1, 2, 3, 6])
        first, number = self.target(parts), len(self.c.accounts.partitions)
        targets = range(first, first + parts)
        self.commands.append(f"Partition_ {table} {parts} {first}")
        action = Partition(tuple(f"t{i}" for i in targets), f"t{table}", by(parts))
        self.c = step(self.c, action).configuration
        self.sources += [Part(number, i) for i in range(parts)]
        self.bound(targets)
        self.note("tau")

    def query(self) -> None:
        """Of a table, or of parts of it at once: a parallel query is charged as one."""
        table, epsilon, parts = (
            self.table(),
            self.epsilon(),
            self.random.choice([0, 0, 1, 3]),
        )
        self.commands.append(f"Query_ {table} ({epsilon.numerator}#{epsilon.denominator})")
        asked = Query(f"t{table}", epsilon, (Count(),) * max(parts, 1), by(parts) if parts else None)
        transition = step(self.c, asked)
        self.c = transition.configuration
        self.note("measured" if transition.rule == "Query" else "bottom")

    def price(self) -> None:
        table, epsilon = self.table(), self.epsilon()
        self.commands.append(f"Price_ {table} ({epsilon.numerator}#{epsilon.denominator})")
        self.note(f"price {self.told(AskPrice(f't{table}', epsilon))}")

    def scale(self) -> None:
        table = self.table()
        self.commands.append(f"Scale_ {table}")
        self.note(f"scale {self.told(AskScale(f't{table}'))}")

    def budget(self) -> None:
        self.commands.append("Budget_")
        self.note(f"budget {self.told(AskBudget())}")

    def told(self, question: AskPrice | AskScale | AskBudget) -> str:
        transition = step(self.c, question)
        self.c = transition.configuration
        match transition.label:
            case Told(fact=int() as factor):
                return str(factor)
            case Told(fact=Mapping() as amounts):
                return ",".join(map(str, amounts.values()))
            case other:
                return repr(other)

    def epsilon(self) -> Fraction:
        return Fraction(self.random.randint(1, 6), self.random.choice([1, 2, 5, 7]))

    def note(self, verdict: str) -> None:
        accounts = self.c.accounts
        maxima = listed(accounts.maxima, range(len(accounts.partitions)))
        counters, direct = listed(accounts.counters, self.sources), listed(accounts.direct, self.sources)
        self.expected.append(f"{verdict} C={counters} D={direct} M={maxima}")

    def term(self) -> str:
        budgets = "; ".join(f"{b.numerator}#{b.denominator}" for b in self.budgets)
        return f"session {self.roots} [{budgets}] [{'; '.join(self.commands)}]"


def listed(amounts: Mapping[Any, Fraction], keys: Sequence[Any]) -> str:
    return ",".join(str(amounts.get(key, Fraction(0))) for key in keys)


def by(parts: int) -> Partitioning:
    return Partitioning(Column("k"), tuple(range(parts)))


def test_the_accounting_is_the_same_on_random_programs(coq: Coq) -> None:
    programs = [Script(Random(seed)) for seed in range(150)]
    assert sum(script.rebound for script in programs) > 50
    verdicts = [verdict for script in programs for verdict in script.expected]
    for word in ("tau", "measured", "bottom", "refused", "price", "scale", "budget"):
        assert any(v.startswith(word) for v in verdicts), f"no program gave {word}"
    for script, answer in zip(programs, coq([script.term() for script in programs]), strict=True):
        assert answer.split("; ") == script.expected


WRONG_CHARGES = (
    "max replaced by last",
    "parent not charged",
    "a part's counter as its largest ε",
    "forwarding unscaled",
    "⊥ leaving counters raised",
    "two partitions sharing counters",
    "vectors combined by max",
    "the budget tested before charging",
    "only one vector entry charged",
    "only the first root's budget tested",
    "every root tested against the largest budget",
    "a budget exceeded by a half",
    "a variable bound again keeps its sensitivity",
    "parts bound again start from nothing",
    "asking for the budget refunds it",
    "the third part has no source",
)


def test_wrong_charges_are_noticed(coq: Coq) -> None:
    left = set(WRONG_CHARGES)
    for seeds in (range(10), range(10, 100)):
        left = unnoticed(coq, left, seeds)
    assert left == set()


def unnoticed(coq: Coq, names: set[str], seeds: range) -> set[str]:
    """Those of the wrong charges that these programs do not show, nor the kernel's own certificate."""
    programs: list[tuple[str, Script]] = []
    noticed: set[str] = set()
    for name in names:
        with applied(next(m for m in MUTANTS if m.name == name)):
            try:
                programs += [(name, Script(Random(seed))) for seed in seeds]
            except KernelViolation:
                noticed.add(name)
    found = coq([script.term() for _, script in programs])
    for (name, script), answer in zip(programs, found, strict=True):
        if answer.split("; ") != script.expected:
            noticed.add(name)
    return names - noticed
