"""Text that somebody looks at."""

from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.errors import UnknownColumn
from fpinq.model.visible import visible, visible_lines


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert visible("a\x1b[2Jb") == "a\\x1b[2Jb"
    assert visible("\x9b2J \x07 \x7f \r \n") == "\\x9b2J \\x07 \\x7f \\r \\n"
    assert visible("a\u202eb\u200b\ud800") == "a\\u202eb\\u200b\\ud800"
    assert visible("Zürich 北京 ± \\x1b") == "Zürich 北京 ± \\x1b"


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_the_text_what_is_shown_can_be_printed(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
    assert all(part.isprintable() for line in visible_lines(text).split("\n") for part in line.split("\t"))


def test_an_error_names_a_column_visibly_and_its_field_has_the_column() -> None:
    error = UnknownColumn("age\x1b", ["\x1b[8m", "age"])
    assert "\x1b" not in str(error)
    assert "\\x1b[8m, age" in str(error)
    assert error.known == ("\x1b[8m", "age")
