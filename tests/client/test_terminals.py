"""Names and keys that a terminal would obey, or a spreadsheet compute, are texts wherever they are shown."""

import csv
import importlib
import inspect
import io
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import fpinq as fp
from fpinq.client.columns import csv_text
from fpinq.client.shown import visibly

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202eleft 100"
NAME, KEY = f"n{HOSTILE}", f"k{HOSTILE}\nleft  1,000,000"


def table() -> Any:
    rows = [{NAME: KEY, "x": 1, "g\x1b": "a"}, {NAME: "b", "x": 2, "g\x1b": "\x1bb"}]
    schema = {NAME: "string", "x": "int64", "g\x1b": "string"}
    return fp.protect(rows, budget=1000, name=f"t{HOSTILE}", schema=schema)


def looked_at() -> Iterator[object]:
    """What a program prints of such a table: tables, parts, rows, answers, errors, plans."""
    t = table()
    by = lambda x: x[NAME]  # noqa: E731
    yield t
    yield t.explain()
    yield t.where(lambda x: x[NAME] == KEY).select(lambda x: {NAME: x.x, "y\x1b": x[NAME].length()})
    seen: list[object] = []
    t.where(lambda x: seen.extend([x, x[NAME], x[NAME] == KEY]) or x.x > 0)
    yield from seen
    parts = t.partition(by, keys=[KEY, "b"])
    yield parts
    yield parts[KEY]
    yield t.group_by(by)
    answers = t.query(1, fp.count(), by=by, keys=[KEY, "b"])
    yield answers
    yield t.query(1, fp.count(), by=[NAME, "g\x1b"], keys=[(KEY, "a"), ("b", "\x1bb")])
    several = fp.several({NAME: fp.count(), "\x1bsum": fp.sum("x", bounds=(0, 2))})
    yield t.query(1, several)
    yield t.query(1, several).split
    yield t.query(1, several, by=by, keys=[KEY, "b"])
    yield t.expected_error(several, 1)
    yield t.noisy_mode(1, by, [KEY, "b"])
    yield t.noisy_top(1, 2, by, [KEY, "b"])
    chosen = t.exponential_mechanism(1, [KEY], lambda x, c: x[NAME] == c)
    yield chosen
    yield f"{chosen:>80}"
    yield t.history
    yield t.sql(f'EXPLAIN SELECT COUNT(*) AS "{NAME}" FROM t', epsilon=1)
    yield t.sql(f'SELECT COUNT(*) AS "{NAME}" FROM t', epsilon=1)
    for wrong in (
        lambda: t.where(lambda x: x.y > 1),
        lambda: parts["c\x1b"],
        lambda: t.query(1, fp.count(), by=by, keys=[KEY, KEY]),
        lambda: t.noisy_sum(1, by),
        lambda: t.sql("SELECT COUNT(*) FROM t WHERE y = '\x1b'", epsilon=1),
        lambda: t.noisy_count(10**6),
    ):
        with pytest.raises(fp.FpinqError) as refused:
            wrong()
        yield refused.value


def is_fit(text: str) -> bool:
    return all(part.isprintable() for line in text.split("\n") for part in line.split("\t"))


def test_no_name_or_key_gives_orders_to_a_terminal() -> None:
    for each in looked_at():
        for text in (str(each), repr(each)):
            assert is_fit(text), repr(text)
        for form in ("_repr_html_", "_repr_svg_"):
            if hasattr(type(each), form):
                assert is_fit(getattr(each, form)())


def test_a_key_with_a_line_in_it_makes_no_line_of_its_own() -> None:
    for each in looked_at():
        for line in str(each).split("\n"):
            assert not line.startswith("left  1,000,000"), str(each)


def test_every_class_of_the_client_shows_itself_visibly() -> None:
    wrapped = visibly(type("C", (), {"__str__": lambda self: ""})).__str__.__code__
    for package in ("fpinq.client", "fpinq.sql"):
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            for name, of in inspect.getmembers(importlib.import_module(found.name), inspect.isclass):
                if of.__module__ != found.name:
                    continue
                for method in {"__str__", "__repr__"} & vars(of).keys():
                    shown = vars(of)[method]
                    written = inspect.unwrap(shown).__code__.co_filename == inspect.getfile(of)
                    if written:  # and not by dataclass, which shows texts as repr does
                        assert shown.__code__ is wrapped, f"@visibly is missing: {found.name}.{name}"


FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t1", "\r1", "\n1", " =1", "\x01=1", "＝1", "\ufeff=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_computes_is_a_text_wherever_it_is_written(text: str) -> None:
    cells = list(csv.reader(io.StringIO(csv_text([[text, "a"], ["x", 1]]), newline="")))
    assert cells[0][0] == f"'{text}"
    t = fp.protect([{"g": "a"}], budget=10, schema={"g": "string"})
    answers = t.query(1, fp.count(), by=lambda x: x.g, keys=[text])
    assert answers.to_csv() == csv_text([answers.to_dict(), *zip(*answers.to_dict().values(), strict=True)])


def test_numbers_dates_and_usual_texts_are_written_as_they_are() -> None:
    line = ["a-b", "a=b", -1, -1.5, "-12345678901234567890", "-inf", "", None, "北京"]
    assert csv_text([line], "\r\n") == "a-b,a=b,-1,-1.5,-12345678901234567890,-inf,,,北京\r\n"


def test_a_carriage_return_in_a_key_ends_no_line_of_csv() -> None:
    for end in ("\n", "\r\n"):
        text = csv_text([["a\r=1+1", "b\nc"], ["d", "e\r\nf"]], end)
        assert text == f'"a\r=1+1","b\nc"{end}d,"e\r\nf"{end}'
