"""The proof and the code say the same: stability table and accounting, compared by running both."""

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fpinq.checker.instances import instances
from fpinq.checker.mutants import MUTANTS, applied
from fpinq.checker.scope import BINARY, SCHEMA, UNARY
from fpinq.model.actions import AskPrice, Assign, Partition, Query
from fpinq.model.errors import UnboundedStability
from fpinq.model.expressions import Column
from fpinq.model.plans import Flatten, PersonTable, Transformation, rows_at_most
from fpinq.model.queries import Count
from fpinq.model.semantics import Configuration, Told, initial, step
from fpinq.model.sources import UNBOUNDED, Part, Root, Source, Stability
from fpinq.model.transformations import (
    Except,
    Explode,
    First,
    GroupBy,
    GroupJoin,
    Intersect,
    Join,
    LimitPerKey,
    LiteralTable,
    Partitioning,
    PartOf,
    SelectMany,
    SemiJoin,
    Take,
    Truncation,
    Union,
)

PROOF = Path(__file__).parents[2] / "proof"
SOURCES = sorted(PROOF.glob("*.v"))
HEADER = """
From Coq Require Import QArith List String.
From Fpinq Require Import Plans Compute.
Import ListNotations.
Set Printing Width 1000000.
"""


def test_nothing_is_admitted_and_no_axiom_is_added() -> None:
    assert len(SOURCES) > 10
    for path in SOURCES:
        text = re.sub(r"\(\*.*?\*\)", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|give_up)\b", text)
        assert found == [], path.name


@pytest.fixture(scope="module")
def compiled() -> Path:
    """The development, compiled; skipped where there is no Coq."""
    if shutil.which("coqc") is None:
        pytest.skip("coqc is not installed: proof and code are not compared here")
    with (PROOF / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ["make", "-C", str(PROOF), "Compute.vo"], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr[-2000:]
    return PROOF


def computed(compiled: Path, folder: Path, terms: Sequence[str]) -> list[str]:
    """What Coq computes for each term, which must be a string."""
    file = folder / "Ask.v"
    file.write_text(HEADER + "".join(f"Compute {term}.\n" for term in terms), encoding="utf-8")
    done = subprocess.run(
        ["coqc", "-Q", str(compiled), "Fpinq", str(file)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.findall(r'= "(.*?)"', done.stdout, flags=re.DOTALL)
    assert len(found) == len(terms)
    return found


# ── the stability table ──────────────────────────────────────────────────────────────


def shape(transformation: Transformation) -> str:
    """The transformation as proof/Plans.v names it."""
    match transformation:
        case LiteralTable():
            return "Literal"
        case SelectMany(at_most=k) | Explode(at_most=k):
            return f"(SelectMany {k})"
        case Take(at_most=k):
            return f"(Take {k})"
        case GroupBy(keys=keys):
            return f"(GroupBy {str(bool(keys)).lower()} Rows)"
        case LimitPerKey(at_most=k, keys=keys):
            return f"(LimitPerKey {k} {'SomeKey' if keys else 'NoKey'})"
        case Union(bag=bag) | Intersect(bag=bag) | Except(bag=bag):
            return f"({type(transformation).__name__} {'OfBags' if bag else 'OfSets'})"
        case SemiJoin(keep=keep):
            return f"(SemiJoin {str(keep).lower()})"
        case GroupJoin():
            return "(GroupJoin Rows Rows)"
        case Join(left=left, right=right):
            return f"(Join {mode(left)} Rows {mode(right)} Rows)"
        case PartOf():
            return "Where"
        case Flatten(body=body):
            return f"(Flatten {rows_at_most(body)})"
        case _:
            return type(transformation).__name__


def mode(truncation: Truncation) -> str:
    return f"(First {truncation.at_most})" if isinstance(truncation, First) else type(truncation).__name__


def largest_stability(transformation: Transformation) -> tuple[Stability, ...]:
    """The stability for parameters of the most demanding kind."""
    match transformation:
        case GroupBy():
            return (2,)
        case GroupJoin():
            return (2, 2)
        case Join(left=left, right=right):
            return (
                left.stability * right.at_most if isinstance(right.at_most, int) else UNBOUNDED,
                right.stability * left.at_most if isinstance(left.at_most, int) else UNBOUNDED,
            )
        case _:
            return transformation.stability


def general(transformations: Iterable[Transformation]) -> list[Transformation]:
    """Those of the largest constants: the registry knows no parameters for which they are less."""
    return [t for t in transformations if t.stability == largest_stability(t)]


def test_the_stability_table_is_the_same(compiled: Path, tmp_path: Path) -> None:
    known = [*general(t for t, _ in instances()), Flatten(PersonTable("visits", 5))]
    found = computed(compiled, tmp_path, [f"show_stability {shape(t)}" for t in known])
    declared = [",".join(str(c) if isinstance(c, int) else "inf" for c in t.stability) for t in known]
    assert found == declared


# ── the accounting ───────────────────────────────────────────────────────────────────


class Script:
    """One random program, for both sides: commands for Coq, and what the kernel says after each."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.budgets = [Fraction(random.randint(1, 40), random.choice([1, 2, 3])) for _ in range(2)]
        roots = {f"t{i}": (SCHEMA, total) for i, total in enumerate(self.budgets)}
        self.c: Configuration = initial(roots)
        self.sources: list[Source] = [Root("t0"), Root("t1")]
        self.tables = [0, 1]
        self.commands: list[str] = []
        self.expected: list[str] = []
        for _ in range(random.randint(3, 12)):
            self.next()

    def next(self) -> None:
        match self.random.randint(0, 9):
            case 0 | 1 | 2:
                self.assign(self.random.choice(general(UNARY.values())), 1)
            case 3 | 4:
                self.assign(self.random.choice(general(BINARY.values())), 2)
            case 5 | 6:
                self.partition()
            case 7:
                self.price()
            case _:
                self.query()

    def assign(self, transformation: Transformation, arity: int) -> None:
        arguments = [self.random.choice(self.tables) for _ in range(arity)]
        target = len(self.tables)
        self.commands.append(
            f"Assign_ {target} {shape(transformation)} [{'; '.join(map(str, arguments))}]%nat"
        )
        try:
            self.c = step(
                self.c, Assign(f"t{target}", transformation, tuple(f"t{a}" for a in arguments))
            ).configuration
        except UnboundedStability:
            self.note("refused")
            return
        self.tables.append(target)
        self.note("tau")

    def partition(self) -> None:
        table, parts, first = self.random.choice(self.tables), self.random.randint(1, 3), len(self.tables)
        number = len(self.c.accounts.partitions)
        targets = tuple(f"t{first + i}" for i in range(parts))
        by = Partitioning(Column("k"), tuple(range(parts)))
        self.commands.append(f"Partition_ {table} {parts} {first}")
        self.c = step(self.c, Partition(targets, f"t{table}", by)).configuration
        self.sources += [Part(number, i) for i in range(parts)]
        self.tables += range(first, first + parts)
        self.note("tau")

    def query(self) -> None:
        table, epsilon = self.random.choice(self.tables), self.epsilon()
        self.commands.append(f"Query_ {table} ({epsilon.numerator}#{epsilon.denominator})")
        transition = step(self.c, Query(f"t{table}", epsilon, (Count(),)))
        self.c = transition.configuration
        self.note("measured" if transition.rule == "Query" else "bottom")

    def price(self) -> None:
        table, epsilon = self.random.choice(self.tables), self.epsilon()
        self.commands.append(f"Price_ {table} ({epsilon.numerator}#{epsilon.denominator})")
        label = step(self.c, AskPrice(f"t{table}", epsilon)).label
        assert isinstance(label, Told)
        assert not isinstance(label.fact, int)
        self.note("price " + ",".join(str(amount) for amount in label.fact.values()))

    def epsilon(self) -> Fraction:
        return Fraction(self.random.randint(1, 6), self.random.choice([1, 2, 5, 7]))

    def note(self, verdict: str) -> None:
        accounts = self.c.accounts

        def listed(amounts: Any, keys: Sequence[Any]) -> str:
            return ",".join(str(amounts.get(key, Fraction(0))) for key in keys)

        maxima = listed(accounts.maxima, range(len(accounts.partitions)))
        counters, direct = listed(accounts.counters, self.sources), listed(accounts.direct, self.sources)
        self.expected.append(f"{verdict} C={counters} D={direct} M={maxima}")

    def term(self) -> str:
        budgets = "; ".join(f"{b.numerator}#{b.denominator}" for b in self.budgets)
        return f"session 2 [{budgets}] [{'; '.join(self.commands)}]"


def scripts(count: int) -> Iterator[Script]:
    for seed in range(count):
        yield Script(Random(seed))


def test_the_accounting_is_the_same_on_random_programs(compiled: Path, tmp_path: Path) -> None:
    programs = list(scripts(150))
    found = computed(compiled, tmp_path, [script.term() for script in programs])
    verdicts = [verdict for script in programs for verdict in script.expected]
    for word in ("tau", "measured", "bottom", "refused", "price"):
        assert any(v.startswith(word) for v in verdicts), f"no program gave {word}"
    for script, answer in zip(programs, found, strict=True):
        assert answer.split("; ") == script.expected


def test_a_wrong_charge_is_noticed(compiled: Path, tmp_path: Path) -> None:
    with applied(next(m for m in MUTANTS if m.name == "forwarding unscaled")):
        programs = list(scripts(20))
    found = computed(compiled, tmp_path, [script.term() for script in programs])
    assert any(answer.split("; ") != script.expected for script, answer in zip(programs, found, strict=True))
