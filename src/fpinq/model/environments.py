"""Environments: what table variables stand for.

A program binds the parts of a partition together, and there may be a million of
them. Names that are *numbered*, stem.0, stem.1 and so on, are written by their stem
and how many they are, and what they stand for is made when it is looked up. An
environment that holds such names is the one that holds each of them: it is only
not written out, until one of them is bound or forgotten by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar, overload
from typing import Literal as Tag

from fpinq.model.errors import BadPartition
from fpinq.model.frozen import dataclass
from fpinq.model.keys import MAX_PARTS
from fpinq.model.maps import put, updated, without

TableVariable = str
MAX_DIGITS = len(str(MAX_PARTS)) + 1
T = TypeVar("T")


@dataclass(frozen=True)
class Numbered(Sequence[TableVariable]):
    """The names stem.0, stem.1, … as many as `number`."""

    stem: str
    number: int
    op: Tag["numbered"] = field(default="numbered", repr=False)

    def __post_init__(self) -> None:
        check_number(self)

    @overload
    def __getitem__(self, index: int) -> TableVariable: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TableVariable]: ...
    def __getitem__(self, index: int | slice) -> TableVariable | Sequence[TableVariable]:
        numbers = range(self.number)[index]
        if isinstance(numbers, int):
            return f"{self.stem}.{numbers}"
        return [f"{self.stem}.{number}" for number in numbers]

    def __len__(self) -> int:
        return self.number

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or not name.startswith(self.stem):
            return False
        stem, number = place(name)
        return stem == self.stem and 0 <= number < self.number


Names = tuple[TableVariable, ...] | Numbered


def check_number(names: Numbered) -> None:
    """BadPartition unless there may be as many names."""
    if type(names.number) is not int or not 0 <= names.number <= MAX_PARTS:
        raise BadPartition(f"numbered names are at most {MAX_PARTS}")


def place(name: TableVariable) -> tuple[str, int]:
    """The stem of a name, and its number; −1 if it has none. There is one way to write each number."""
    stem, dot, digits = name.rpartition(".")
    is_number = dot and digits.isdigit() and digits.isascii() and len(digits) < MAX_DIGITS
    if not is_number or (digits[0] == "0" and digits != "0"):
        return name, -1
    return stem, int(digits)


class Environment(Mapping[TableVariable, T]):
    """Names one by one, and by their stems those that are numbered; no name is among both."""

    __slots__ = ("_alike", "numbered", "single")

    def __init__(
        self, single: Mapping[TableVariable, T], numbered: Mapping[str, Sequence[T]], alike: int
    ) -> None:
        self.single, self.numbered, self._alike = single, numbered, alike

    def get(self, name: object, default: Any = None) -> Any:
        """What a name stands for, or the default."""
        if isinstance(name, str) and "." in name:
            stem, number = place(name)
            alike = self.numbered.get(stem, ())
            if 0 <= number < len(alike):
                return alike[number]
        return self.single.get(name, default)  # type: ignore[call-overload]

    def __getitem__(self, name: TableVariable) -> T:
        found: T | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[TableVariable]:
        yield from self.single
        for stem, alike in self.numbered.items():
            yield from Numbered(stem, len(alike))

    def __len__(self) -> int:
        return len(self.single) + self._alike

    def __repr__(self) -> str:
        return f"Environment({dict(self)!r})"

    def bind(self, tables: Mapping[TableVariable, T]) -> "Environment[T]":
        """With these too."""
        apart = self._written_out([name for name in tables if "." in name])
        return Environment(updated(apart.single, tables), apart.numbered, apart._alike)

    def bind_numbered(self, stem: str, tables: Sequence[T]) -> "Environment[T]":
        """With as many numbered names too."""
        rest = self.unbind_numbered(Numbered(stem, len(tables)))
        return Environment(rest.single, put(rest.numbered, stem, tables), rest._alike + len(tables))

    def unbind(self, name: TableVariable) -> "Environment[T]":
        """Without a name."""
        apart = self._written_out([name])
        return Environment(without(apart.single, name), apart.numbered, apart._alike)

    def unbind_numbered(self, names: Numbered) -> "Environment[T]":
        """Without as many numbered names."""
        alike = len(self.numbered.get(names.stem, ()))
        if alike == len(names):
            return Environment(self.single, without(self.numbered, names.stem), self._alike - alike)
        apart = self._written_out([f"{names.stem}.0"] if alike else [])
        single = apart.single
        for name in _shared(single, names):
            single = without(single, name)
        return Environment(single, apart.numbered, apart._alike)

    def _written_out(self, names: Sequence[TableVariable]) -> "Environment[T]":
        """The same, with all that is numbered like one of these one by one."""
        if not names:
            return self
        single, numbered, alike = self.single, self.numbered, self._alike
        for stem in {place(name)[0] for name in names if name in self and name not in self.single}:
            tables = numbered[stem]
            single = updated(single, dict(zip(Numbered(stem, len(tables)), tables, strict=True)))
            numbered, alike = without(numbered, stem), alike - len(tables)
        return Environment(single, numbered, alike)


def bind(
    environment: Mapping[TableVariable, T], tables: Mapping[TableVariable, T]
) -> Mapping[TableVariable, T]:
    """E[tᵢ ↦ Tᵢ] for these."""
    if type(environment) is Environment:
        return environment.bind(tables)
    return updated(environment, tables)


def bind_all(
    environment: Mapping[TableVariable, T], names: Names, tables: Sequence[T]
) -> Mapping[TableVariable, T]:
    """The same, of as many names as tables. Those that are numbered stay together."""
    if not isinstance(names, Numbered):
        return bind(environment, dict(zip(names, tables, strict=True)))
    return _apart(environment).bind_numbered(names.stem, tables)


def unbind(
    environment: Mapping[TableVariable, T], names: TableVariable | Numbered
) -> Mapping[TableVariable, T]:
    """E without what a name stands for, or without what each of several does."""
    if isinstance(names, Numbered):
        return _apart(environment).unbind_numbered(names)
    if type(environment) is Environment:
        return environment.unbind(names)
    return without(environment, names)


def things(environment: Mapping[TableVariable, T]) -> int:
    """How many things are held: the tables of names that are numbered alike are one."""
    if type(environment) is Environment:
        return len(environment.single) + len(environment.numbered)
    return len(environment)


def _apart(environment: Mapping[TableVariable, T]) -> Environment[T]:
    return environment if type(environment) is Environment else Environment(environment, {}, 0)


def _shared(single: Mapping[TableVariable, Any], names: Numbered) -> list[TableVariable]:
    """The names that are among both, by a look at the fewer."""
    if len(single) < len(names):
        return [name for name in single if name in names]
    return [name for name in names if name in single]
