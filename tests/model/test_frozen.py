"""model.frozen means what the standard library means: the same class, made by both, behaves the same."""

import copy
import dataclasses
import inspect
import pickle
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model import frozen
from fpinq.model.frozen import dataclass

NAMES = "abcd"


@st.composite
def fields_of(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """Fields as a class may state them: those with a default after those without."""
    plain = draw(st.integers(0, 2))
    options = []
    for place, name in enumerate(NAMES[: draw(st.integers(plain, 4))]):
        stated = draw(st.sets(st.sampled_from(["repr", "compare", "kw_only"])))
        given = {key: draw(st.booleans()) for key in stated}
        if place >= plain:
            made = draw(st.sampled_from([{"default": place}, {"default_factory": list}]))
            given |= {**made, "init": draw(st.booleans())}
        options.append((name, given))
    return options


def made_by(decorate: Callable[..., Any], options: list[tuple[str, dict[str, Any]]], **flags: bool) -> Any:
    body: dict[str, Any] = {name: field(**given) for name, given in options if given}
    body |= {"__annotations__": {name: int for name, _ in options}, "__doc__": "A class."}
    return decorate(frozen=True, **flags)(type("Made", (), body))


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return type(error), str(error)


def looks(cls: Any, values: list[int], named: dict[str, int], eq: bool, shown: bool) -> list[object]:
    """All that can be seen of an instance."""
    one, less = outcome(lambda: cls(*values, **named)), outcome(lambda: cls(*values[:-1], **named))
    if not isinstance(one, cls):
        return [one]
    return [
        vars(one),
        shown and repr(one),
        one == cls(*values, **named),
        one == less,
        one == 1,
        eq and outcome(lambda: hash(one)),
        outcome(lambda: setattr(one, "a", 1)),
        outcome(lambda: setattr(one, "new", 1)),
        outcome(lambda: delattr(one, "a")),
        outcome(lambda: vars(dataclasses.replace(one, a=2))),
    ]


@given(
    fields_of(),
    st.lists(st.integers(0, 2), max_size=4),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=2),
    st.booleans(),
    st.booleans(),
)
def test_a_frozen_class_is_the_one_that_the_library_makes(
    options: list[tuple[str, dict[str, Any]]], values: list[int], named: dict[str, int], eq: bool, shown: bool
) -> None:
    ours, theirs = (made_by(d, options, eq=eq, repr=shown) for d in (dataclass, dataclasses.dataclass))
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert repr(ours.__dataclass_params__) == repr(theirs.__dataclass_params__)
    assert looks(ours, values, named, eq, shown) == looks(theirs, values, named, eq, shown)


def test_a_class_keeps_the_methods_that_are_its_own() -> None:
    @dataclass(frozen=True)
    class Own:
        """With a hash and a representation of its own."""

        a: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "a", self.a + 1)

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    assert (Own(1).a, hash(Own(1)), repr(Own(1)), Own(1) == Own(1)) == (2, 7, "own", True)

    @dataclass(frozen=True)
    class Alike:
        """Equal to all."""

        a: int

        def __init__(self, a: int) -> None:
            object.__setattr__(self, "a", -a)

        def __eq__(self, other: object) -> bool:
            return True

    assert Alike(1).a == -1
    assert Alike(1) == Alike(2)
    assert hash(Alike(1)) == hash((-1,))


@dataclass(frozen=True)
class Point:
    """What can be written down, and found again by its name."""

    x: int
    y: tuple[Any, ...] = ()


def test_what_is_copied_and_pickled_is_equal_and_frozen() -> None:
    point = Point(1, (Point(2),))
    for again in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert again == point
        assert hash(again) == hash(point)
        with pytest.raises(FrozenInstanceError):
            again.x = 2  # type: ignore[misc]


def test_what_was_never_initialised_is_compared_and_hashed_all_the_same() -> None:
    @dataclass(frozen=True)
    class Fresh:
        """Of which none was made yet."""

        a: int

    one, other = object.__new__(Fresh), object.__new__(Fresh)
    for bare in (one, other):
        object.__setattr__(bare, "a", 1)
    assert one == other
    assert hash(one) == hash(Fresh(1))


def test_a_class_that_is_extended_keeps_what_it_refuses() -> None:
    class Extended(Point):
        """Not a dataclass of its own: it may have more."""

    more = Extended(1)
    more.z = 1  # type: ignore[attr-defined]
    del more.z  # type: ignore[attr-defined]
    assert repr(more).endswith("Extended(x=1, y=())")
    with pytest.raises(FrozenInstanceError):
        more.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del more.x

    @dataclass(frozen=True)
    class Longer(Point):
        """A dataclass of a dataclass."""

        z: int = 3

    assert Longer(1) == Longer(1, (), 3)
    assert repr(Longer(1)).endswith("Longer(x=1, y=(), z=3)")


def test_a_representation_of_itself_ends() -> None:
    @dataclass(frozen=True)
    class Loop:
        """In which a list can hold the whole."""

        items: list[Any]

    loop = Loop([])
    loop.items.append(loop)
    assert repr(loop).endswith("Loop(items=[...])")


def test_a_class_that_is_not_frozen_is_the_librarys() -> None:
    @dataclass
    class Loose:
        """Which changes."""

        a: int

    loose = Loose(1)
    loose.a = 2
    assert loose == Loose(2)

    @dataclass(frozen=True, slots=True)
    class Slotted:
        """Without a dictionary."""

        a: int

    assert not hasattr(Slotted(1), "__dict__")


def test_nothing_is_compiled_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[type] = []
    compile_ = frozen._compiled

    def counting(cls: type) -> Any:
        compiled.append(cls)
        return compile_(cls)

    monkeypatch.setattr(frozen, "_compiled", counting)

    @dataclass(frozen=True)
    class Late:
        """Compiled once."""

        a: int

    assert compiled == []
    assert [Late(1) == Late(1), hash(Late(1)) == hash(Late(1)), Late(2) != Late(3)] == [True] * 3
    assert compiled == [Late]


def test_two_threads_that_are_first_find_the_same() -> None:
    for _ in range(20):

        @dataclass(frozen=True)
        class Raced:
            """Looked up by several at once."""

            a: int

        start, found = threading.Barrier(4), []

        def race(cls: Any = Raced, start: Any = start, found: Any = found) -> None:
            start.wait()
            found.append(cls(1) == cls(1) and hash(cls(1)) == hash((1,)))

        threads = [threading.Thread(target=race) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4
