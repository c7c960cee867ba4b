"""Formats that last: what was written once is read, and written again to the byte, whatever Python calls it.

The files in golden/ were made by earlier versions. Lines are added to them, never changed.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import field, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from fpinq.ledger import forms, open_ledger, open_store, wire
from fpinq.ledger.entries import START, Head, Line, body_of, line, parsed
from fpinq.ledger.errors import OtherFormat
from fpinq.ledger.store import Pages
from fpinq.ledger.verify import verify
from fpinq.model.actions import Action
from fpinq.model.events import FORMAT, Event
from fpinq.model.expressions import Type
from fpinq.model.notions import Total
from fpinq.model.operators import OPERATORS
from fpinq.model.plans import Plan, Shape
from fpinq.model.traces import Observation
from fpinq.runtime.refusals import FAILURES
from ledger.damage import behind_the_back, rewrite

GOLDEN = Path(__file__).parent / "golden"
KINDS = {"action": Action, "observation": Observation, "shape": Shape, "plan": Plan, "budget": Total}
CORPUS = [written.split(" ", 1) for written in (GOLDEN / "wire-1.txt").read_text().splitlines()]


def written_classes(kind: Any, found: set[type] | None = None) -> set[type]:
    """Every class that a value of a type may be made of."""
    found = set() if found is None else found
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, Type)):
        if kind in found:
            return found
        found.add(kind)
        if is_dataclass(kind):
            hints = wire.get_type_hints(kind)
            for own in fields(kind):
                written_classes(hints[own.name], found)
    for argument in get_args(kind):
        written_classes(argument, found)
    return found


LANGUAGE = sorted(
    (kind for kind in written_classes(tuple[Action, Observation, Shape, Plan, Total]) if is_dataclass(kind)),
    key=lambda kind: kind.__name__,
)
ENTRIES = get_args(Event)


@pytest.fixture
def format_2(tmp_path: Path) -> Path:
    return Path(shutil.copy(GOLDEN / "format-2.ledger", tmp_path / "people.ledger"))


@pytest.fixture
def chains(tmp_path: Path) -> list[list[Line]]:
    """The entries of every golden ledger of format 2."""
    found = []
    for name in ("format-2.ledger", "format-2-upgraded.ledger"):
        copy = shutil.copy(GOLDEN / name, tmp_path / name)
        with closing(open_store(copy, create=False)) as store, store.reading() as statements:
            found.append(list(Pages(statements).after(START.seq)))
    return found


@pytest.fixture
def entries(chains: list[list[Line]]) -> list[Line]:
    return [stored for chain in chains for stored in chain]


def nodes(data: Any) -> Iterator[Any]:
    """All objects in parsed JSON."""
    yield data
    for inner in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from nodes(inner)


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Forms are looked up again, in the test and after it."""

    def forget() -> None:
        forms.form_of.cache_clear()
        wire._decoder.cache_clear()

    forget()
    yield
    forget()


@pytest.mark.parametrize(("kind", "text"), CORPUS, ids=range(1, len(CORPUS) + 1))
def test_what_was_written_is_read_and_written_again_to_the_byte(kind: str, text: str) -> None:
    assert wire.encode(wire.decode(text, KINDS[kind])) == text


def test_the_corpus_has_every_form_with_every_field_every_operator_and_every_type() -> None:
    found = [node for _, text in CORPUS for node in nodes(wire.parse(text)) if isinstance(node, dict)]
    seen = {(node["op"], name) for node in found if "op" in node for name in node}
    assert seen == {
        (op, name) for op, words in forms.FORMS.items() for name in ["op", *map(_on_the_wire, words.split())]
    }
    assert {node["operator"] for node in found if node.get("op") == "apply"} == set(OPERATORS)
    texts = " ".join(text for _, text in CORPUS)
    assert all(f'"{type_.value}"' in texts for type_ in Type if type_ is not Type.STRINGS)


def _on_the_wire(word: str) -> str:
    return word.rstrip("?").partition("=")[0]


def test_every_class_that_is_written_has_a_form_and_every_form_a_class() -> None:
    assert {forms.form_of(kind).op for kind in LANGUAGE} == forms.FORMS.keys()
    assert {forms.form_of(kind).op for kind in ENTRIES} == forms.ENTRIES.keys()
    assert len(LANGUAGE) == len(forms.FORMS)


@pytest.fixture
def renamed(forgotten: None) -> Iterator[None]:
    """Every class has another name."""
    names = {kind: kind.__name__ for kind in (*LANGUAGE, *ENTRIES)}
    for number, kind in enumerate(names):
        kind.__name__ = f"Renamed{number}"
    yield
    for kind, name in names.items():
        kind.__name__ = name


def test_renaming_every_class_changes_no_byte(renamed: None, entries: list[Line]) -> None:
    for kind, text in CORPUS:
        assert wire.encode(wire.decode(text, KINDS[kind])) == text
    for stored in entries:
        body = body_of(stored)
        assert wire.to_json(body)["op"] == body.kind


@pytest.mark.parametrize("kind", [*LANGUAGE, *ENTRIES], ids=lambda kind: kind.__name__)
def test_renaming_every_field_of_a_class_changes_no_byte(
    forgotten: None, monkeypatch: pytest.MonkeyPatch, entries: list[Line], kind: Any
) -> None:
    value = _an_instance(kind, entries)
    text = wire.encode(value)
    declared = "kind" if kind in ENTRIES else "op"
    table = forms.ENTRIES if kind in ENTRIES else forms.FORMS
    form, hints = forms.form_of(kind), wire.get_type_hints(kind)
    renamed = make_dataclass(
        "Renamed",
        [
            (f"now_{own}", hints[own], field(default=None) if name not in form.required else field())
            for name, own in sorted(form.names, key=lambda named: named[0] not in form.required)
        ],
        namespace={declared: form.op},
    )
    now = renamed(**{f"now_{own}": getattr(value, own) for _, own in form.names})
    if form.names:
        with pytest.raises(TypeError, match=repr(form.op)):  # before its form says so: loudly
            wire.encode(now)
    words = (f"{_on_the_wire(word)}=now_{word}" for word in table[form.op].split())
    monkeypatch.setitem(table, form.op, " ".join(words))
    assert wire.encode(now) == text
    assert wire.encode(wire.decode(text, renamed)) == text


def _an_instance(kind: type, entries: list[Line]) -> Any:
    """One that is in the golden files."""
    if kind in ENTRIES:
        return next(body for body in map(body_of, entries) if type(body) is kind)
    values = (wire.decode(text, KINDS[union]) for union, text in CORPUS)
    return next(part for value in values for part in _parts(value) if type(part) is kind)


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if is_dataclass(value):
        value = tuple(getattr(value, own.name) for own in fields(value) if own.init)
    for inner in value if isinstance(value, tuple) else ():
        yield from _parts(inner)


def test_a_class_without_an_op_of_its_own_is_not_written() -> None:
    stranger = make_dataclass("AskScale", [("table", str)])
    for kind in (stranger, make_dataclass("Heir", [], bases=(type("Plain", (), {"op": "silent"}),))):
        with pytest.raises(TypeError, match="declare its op"):
            wire.encode(kind(*["t"][: len(fields(kind))]))


def test_what_may_be_left_out_is_what_has_a_default() -> None:
    with pytest.raises(TypeError, match="may be left out"):
        forms.form_of(make_dataclass("AskScale", [("table", str, "t")], namespace={"op": "ask_scale"}))


# ── the ledger ───────────────────────────────────────────────────────────────────────


def test_a_ledger_of_format_2_opens_and_verifies(format_2: Path) -> None:
    ledger = open_ledger(format_2, create=False)
    head = ledger.head()
    left = {name: str(root.remaining) for name, root in ledger.roots().items()}
    ledger.close()
    with closing(open_store(format_2, create=False)) as store:
        assert verify(store).head == head
    assert head == Head(35, "8352b8218e134f20445d93906e8cf05f96d65381fb65620735d2371954ae7247")
    assert left == {"people": "13/8", "visits": "47/64", "users": "199/210", "visits/tuesday": "125/192"}


def test_every_entry_of_format_2_is_written_again_to_the_byte(chains: list[list[Line]]) -> None:
    kinds = set()
    for chain in chains:
        before = START
        for stored in chain:
            said = parsed(stored)
            assert line(before, body_of(stored), said["at"], said["totals"]) == stored
            before = Head(stored.seq, stored.hash)
            kinds.add(said["kind"])
    assert kinds == forms.ENTRIES.keys()


def test_an_upgraded_ledger_opens_and_verifies(tmp_path: Path) -> None:
    place = shutil.copy(GOLDEN / "format-2-upgraded.ledger", tmp_path / "people.ledger")
    open_ledger(place, create=False).close()
    with closing(open_store(place, create=False)) as store:
        assert {name: str(spent) for name, (_, spent) in verify(store).roots.items()} == {
            "people": "3/8",
            "visits": "21/64",
            "users": "27/70",
            "visits/tuesday": "67/192",
        }


OLDER = ["format-1.ledger", "format-1-unsealed.ledger"]


@pytest.mark.parametrize("name", OLDER)
def test_an_older_ledger_is_refused_with_the_command_that_upgrades_it(tmp_path: Path, name: str) -> None:
    older = shutil.copy(GOLDEN / name, tmp_path / "people.ledger")
    with pytest.raises(OtherFormat, match="fpinq ledger upgrade") as opening:
        open_ledger(older)
    assert (opening.value.found, opening.value.reads) == (1, 2)
    with closing(open_store(older)) as store, pytest.raises(OtherFormat, match="fpinq ledger upgrade"):
        verify(store)
    assert Path(older).read_bytes() == (GOLDEN / name).read_bytes()


def test_a_newer_ledger_is_refused_whatever_else_is_in_it(format_2: Path) -> None:
    """A newer format may hold anything, but its first entry says which it is."""

    def of_format_3(fields: dict[str, Any]) -> None:
        fields.update(format=3, more={"op": "unheard_of"})
        del fields["totals"]

    with behind_the_back(str(format_2)) as sql:
        rewrite(sql, 0, of_format_3, rest=True)
    with pytest.raises(OtherFormat, match="Install that one"):
        open_ledger(format_2)
    with closing(open_store(format_2)) as store, pytest.raises(OtherFormat, match="newer fpinq"):
        verify(store)


# ── the description ──────────────────────────────────────────────────────────────────

PAGE = (Path(__file__).parents[2] / "docs/reference/formats.md").read_text(encoding="utf-8")


def test_the_page_describes_every_form_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|( `\w+\?*`: [^|]*| *)\|$", PAGE, re.MULTILINE)
    described = {(op, " ".join(re.findall(r"`(\w+\?*)`: ", fields))) for op, fields in rows}
    words = [*forms.FORMS.items(), *forms.ENTRIES.items()]
    ours = {(op, " ".join(re.sub(r"=\w+", "", word) for word in form.split())) for op, form in words}
    assert {row for row in described if row not in ours and row[0] not in CODES} == set()
    assert ours <= described


def test_the_page_has_the_versions_the_operators_and_the_fields_of_errors() -> None:
    assert f"| the wire | {wire.VERSION} |" in PAGE
    assert f"| the ledger | {FORMAT} |" in PAGE
    assert all(f"`{operator}`" in PAGE for operator in OPERATORS)
    for failure in FAILURES.values():
        named = ", ".join(f"`{name}`" for name in failure.fields)
        assert (f"| `{failure.code}` | {named} |" in PAGE) == bool(failure.fields)


CODES = {failure.code for failure in FAILURES.values()}
