"""The data sets of a server, as tables; in whichever way its system is reached."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from fpinq.client.bounds import Known
from fpinq.client.edge import edge
from fpinq.client.facts import Bound, Facts, Made, Within
from fpinq.client.shown import html_table, visibly
from fpinq.client.spelling import show_down
from fpinq.client.sql import Tables, asked
from fpinq.client.systems import System, fresh_variable
from fpinq.client.table import Table
from fpinq.ledger import wire
from fpinq.model.actions import Assign
from fpinq.model.errors import ProgramError, suggest
from fpinq.model.expressions import Schema, Type, Value
from fpinq.model.plans import Flatten, PersonTable
from fpinq.model.visible import visible
from fpinq.runtime.refusals import UnknownDataSet

if TYPE_CHECKING:
    from fpinq.client.answers import Answers


class Serving(System, Protocol):
    """A system of a server."""

    def data_sets(self) -> Sequence[Mapping[str, Any]]:
        """What is public about every data set."""


@visibly
class Catalog(Mapping[str, Any]):
    """The data sets of a server by name: a table each, or a mapping of tables about the same people."""

    def __init__(self, system: Serving) -> None:
        self._system = system
        self._data_sets = {found["name"]: found for found in system.data_sets()}

    def __getitem__(self, name: str) -> Any:
        if name not in self._data_sets:
            raise UnknownDataSet(
                f"no data set {name!r}{suggest(str(name), self._data_sets)}; "
                f"there are: {', '.join(self._data_sets) or 'none'}"
            )
        tables = self._grown(name)
        return tables[name] if list(tables) == [name] else Tables(tables)

    @edge
    def sql(self, text: str, /, epsilon: object = None, delta: object = None) -> "Answers":
        """The answers of a statement about these data sets. It is read here: the server sees actions only."""
        return asked(text, epsilon, self, delta=delta)

    def table(self, name: str) -> Table:
        """A table by its name; one of several of a data set is called dataset.table. No other is made."""
        data_set, dot, table = (name, "", "") if name in self._data_sets else name.partition(".")
        if data_set not in self._data_sets:
            return self[data_set]  # type: ignore[no-any-return]  # which says that there is none
        known = [found["name"] for found in self._data_sets[data_set]["tables"]]
        if known == [data_set]:
            if dot:
                raise ProgramError(f"{data_set} is one table: say {data_set}, not {name}")
            return self._grown(data_set)[data_set]
        if table not in known:
            tables = " or ".join(f"{data_set}.{other}" for other in known)
            raise ProgramError(f"{data_set} has several tables: say {tables}")
        return self._grown(data_set, table)[table]

    def _grown(self, name: str, only: str | None = None) -> dict[str, Table]:
        """The tables of a data set, or one of them, each with the blocks that it grew by."""
        tables = self._tables(self._data_sets[name], only)
        for block in self._data_sets.values():
            if block["block_of"] == name:
                alone = len(self._data_sets[name]["tables"]) == 1
                grown = self._tables(block, None if alone else only)
                if alone:  # one table is called what its data set is called
                    grown = dict(zip(tables, grown.values(), strict=True))
                tables = {table: old.concat(grown[table]) for table, old in tables.items()}
        return tables

    def _tables(self, found: Mapping[str, Any], only: str | None = None) -> dict[str, Table]:
        """The tables of one root, without the blocks that it grew by; or one of them."""
        if found["unit"] is None:
            return {found["name"]: self._of_rows(found["name"], found["tables"][0])}
        wanted = [table for table in found["tables"] if only in (None, table["name"])]
        return {table["name"]: self._of_persons(found, table) for table in wanted}

    def __iter__(self) -> Iterator[str]:
        return iter(self._data_sets)

    def __len__(self) -> int:
        return len(self._data_sets)

    def __repr__(self) -> str:
        return f"<{len(self)} data set{'s' * (len(self) != 1)}: {', '.join(map(visible, self))}>"

    def _repr_html_(self) -> str:
        lines = [
            (
                name,
                found["unit"] or "a record",
                _in_words(found["tables"]),
                _budget(found),
            )
            for name, found in self._data_sets.items()
        ]
        return html_table(["data set", "unit", "columns", "budget"], lines)

    def _of_rows(self, name: str, table: Mapping[str, Any]) -> Table:
        bound = Bound(self._system, name)
        return Table(Facts(_schema(table), Made(name), bound, roots={name: name}, columns=_columns(table)))

    def _of_persons(self, found: Mapping[str, Any], table: Mapping[str, Any]) -> Table:
        root, unit, most = found["name"], found["unit"], table["rows_per_unit"]
        body, variable = PersonTable(table["name"], most), fresh_variable()
        self._system.act(Assign(variable, Flatten(body), (root,)))
        facts = Facts(
            _schema(table),
            Made(f"{table['name']}, at most {most} per {unit}", rows_per_unit=most),
            Bound(self._system, variable),
            roots={root: root},
            columns=_columns(table),
            within=Within(root, body, frozenset({unit})),
        )
        return Table(facts)


def _budget(found: Mapping[str, Any]) -> str:
    """A budget for people: of ε a number, rounded down; of another notion in its own words, as it is told."""
    told = found.get("promised", found["budget"])  # where an older server tells it
    return told if "=" in told else show_down(Fraction(told))


def _in_words(tables: Sequence[Mapping[str, Any]]) -> str:
    """The columns of tables; of several, each under its name."""
    columns = [", ".join(f"{name} {type_}" for name, type_ in table["schema"]) for table in tables]
    if len(tables) == 1:
        return columns[0]
    return "; ".join(f"{table['name']}: {listed}" for table, listed in zip(tables, columns, strict=True))


def _schema(table: Mapping[str, Any]) -> Schema:
    return Schema(tuple((name, Type(type_)) for name, type_ in table["schema"]))


def _columns(table: Mapping[str, Any]) -> dict[str, Known]:
    names = {name for name, _ in table["schema"]}
    known = {name: known for name, known in table["columns"].items() if name in names}
    return {name: Known(**_metadata(metadata)) for name, metadata in known.items()}


def _metadata(known: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        what: values if what == "max_length" else wire.from_json(values, tuple[Value, ...])
        for what, values in known.items()
    }
    if "bounds" in found:
        found["bounds"] = tuple(Fraction(b) if isinstance(b, str) else b for b in found["bounds"])
    return found
