"""The house: everything a server holds, and who may come in."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fpinq.engines import owner
from fpinq.engines.files import is_files
from fpinq.engines.interface import Engine
from fpinq.engines.registry import made
from fpinq.engines.rows import is_rows
from fpinq.ledger import Ledger, RootState, open_ledger, wire
from fpinq.ledger.errors import LedgerCorrupt, NoLedger
from fpinq.model.environments import TableVariable
from fpinq.model.errors import BadData, KernelViolation, ProgramError
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Schema, Type, checked_value
from fpinq.model.keys import has_duplicates
from fpinq.model.notions import is_concentrated
from fpinq.model.plans import Persons, Shape
from fpinq.model.work import RootSize, TableSize
from fpinq.runtime.mechanisms import draw, draw_each
from fpinq.runtime.refusals import NotAllowed, UnknownDataSet
from fpinq.runtime.registration import Check, Given, Offer, register
from fpinq.runtime.system import Mechanism, ProtectedSystem
from fpinq.server import turns
from fpinq.server.admission import Admission
from fpinq.server.config import EVERYBODY, Config, DataSet, check_column, is_url
from fpinq.server.limits import Rate
from fpinq.server.metrics import Metrics
from fpinq.server.places import VISIT, Places
from fpinq.server.quantum import AsgiScope
from fpinq.server.sessions import Room, Sessions
from fpinq.server.tokens import Bearer, Tokens
from fpinq.server.told import BudgetTold, DataSetTold

_owner = logging.getLogger("fpinq.owner")


class House:
    """The data sets, the system where programs act on them, the tokens and the limits."""

    def __init__(self, config: Config, mechanism: Mechanism = draw) -> None:
        owner.this_process_is_the_owners()
        self.config = config
        self.limits = config.limits
        self.tokens = Tokens(config.tokens)
        self.metrics = Metrics()
        self.places = Places(config.limits)
        self._rate = Rate(config.limits.requests_per_second)
        self._stopped = False
        self._engines: dict[str, Engine] = {}
        self._shapes: dict[str, Shape] = {}
        self.sessions = Sessions(self.tokens.key("sessions"))
        self.data_sets: dict[str, DataSet] = {}
        self.ledger = open_served(config, self.tokens)
        self.record = turns.InTurn(self.ledger, float(config.quantum_seconds))
        self._admission = Admission(config.limits, self._engine("duckdb").costs())
        alike = None
        if mechanism is draw:  # what a test draws with may wait for others of its kind
            mechanism, alike = turns.drawing(draw, draw_each)
        self.system = ProtectedSystem(
            # Of tables without a root: small, but what is made of them may not be, and DuckDB can be stopped.
            self._engine("duckdb"),
            record=self.record,
            mechanism=mechanism,
            alike=alike,
            admit=self._admission.check,
            queries_at_most=config.limits.queries_per_session,
        )
        self.room = Room(config.limits.tables_per_session, self._tables_with)
        for data_set in config.data_sets.values():
            self.add(data_set)

    def add(self, data_set: DataSet) -> None:
        """Hold one more data set: the same data goes on with what is left of its budget."""
        name = data_set.name
        if data_set.block_of is not None and data_set.block_of not in self.data_sets:
            raise UnknownDataSet(f"{name!r} is a block of {data_set.block_of!r}, which must come before it")
        with _about(name):
            if name in self.data_sets:
                raise BadData("there is one of this name already")
            taken = register(
                self.system, self._engine(data_set.engine), offer_of(data_set), self._check(data_set)
            )
        self._shapes[name] = taken.shape
        self.data_sets[name] = data_set

    def _check(self, data_set: DataSet) -> Check:
        """What is wrong with data that is not as its owner says; what is not is bounded from then on."""
        name, base = data_set.name, data_set.block_of

        def check(shape: Shape, untold: Sequence[str]) -> None:
            check_stated(data_set, schemas_of(name, shape), untold)
            check_columns(data_set, schemas_of(name, shape))
            if base is not None:
                check_block(data_set, shape, self.data_sets[base], self._shapes[base])
            self._admission.add(name, size_of(data_set, shape), self._engine(data_set.engine).costs())

        return check

    def _engine(self, kind: str) -> Engine:
        """The engine of a kind, made when it is first needed."""
        if kind not in self._engines:
            self._engines[kind] = made(kind, **_options(self.config).get(kind, {}))
        return self._engines[kind]

    # ── who may come in ──────────────────────────────────────────────────────────────

    def admit(self, scope: AsgiScope, *roles: str) -> Bearer:
        """Whom a request comes from, if it may come now; it has a place from then on."""
        if self._stopped:
            raise KernelViolation("the server has stopped")
        authorization = dict(scope["headers"]).get(b"authorization")
        bearer = self.tokens.bearer(None if authorization is None else authorization.decode("latin-1"))
        self._rate.take(bearer.name)
        if roles and bearer.role not in roles:
            raise NotAllowed(_ONLY[roles])
        scope[VISIT].enter(bearer)
        return bearer

    def failed(self, error: BaseException) -> None:
        """Note an error; stop for good if it is one that must not happen."""
        self.metrics.refused(error)
        if isinstance(error, KernelViolation | LedgerCorrupt) and not self._stopped:
            self._stopped = True
            _owner.critical("stopped: an invariant does not hold", exc_info=error)

    @property
    def healthy(self) -> bool:
        """Whether it still answers."""
        return not self._stopped

    # ── public facts ─────────────────────────────────────────────────────────────────

    def catalog(self) -> list[DataSetTold]:
        """What is public about every data set."""
        held = list(self.data_sets)  # before the ledger is asked: one more may arrive at any time
        states = self.ledger.roots()
        return [self._facts(name, states[name]) for name in held]

    def data_set(self, name: str) -> DataSetTold:
        """What is public about a data set."""
        self.check_known(name)
        return self._facts(name, self.ledger.roots()[name])

    def check_known(self, name: str) -> None:
        """UnknownDataSet unless there is one of this name."""
        if name not in self.data_sets:
            raise UnknownDataSet(f"no data set {name[:100]!r}: see /datasets")

    def _tables_with(self, session: str, targets: Sequence[TableVariable], analyst: str) -> int:
        """How many tables a session would hold with these bound; the data sets are among them."""
        held = self.record.configuration(session, analyst).environment
        return len(held) + sum(target not in held for target in targets)

    def _facts(self, name: str, state: RootState) -> DataSetTold:
        data_set, shape = self.data_sets[name], self._shapes[name]
        schemas = schemas_of(name, shape)
        return {
            "name": name,
            "unit": data_set.unit,
            "block_of": data_set.block_of,
            **budget_told(state),
            "promised": str(data_set.budget),
            "keys_delta": str(keys) if (keys := state.registered.keys_delta) else None,
            "remaining_delta": str(state.remaining_delta) if keys else None,
            "frozen": state.frozen,
            "description": data_set.description,
            "tables": [
                {
                    "name": table,
                    "description": given.description,
                    "descriptions": {
                        c: k["description"] for c, k in given.columns.items() if "description" in k
                    },
                    "schema": [[column, type_.value] for column, type_ in schemas[table].columns],
                    "rows_per_unit": given.rows_per_unit,
                    "rows_at_most": given.rows_at_most,
                    "columns": {column: _public(known) for column, known in given.columns.items()},
                }
                for table, given in data_set.tables.items()
            ],
        }

    def close(self) -> None:
        """Forget the data; the ledger stays."""
        for engine in self._engines.values():
            engine.close()
        self.ledger.close()


_ONLY = {
    ("analyst",): "only an analyst's token may ask: fpinq token create --role analyst",
    ("auditor", "owner"): "only an auditor or an owner may read the trace",
    ("owner",): "only an owner may do this",
}


def open_served(config: Config, tokens: Tokens) -> Ledger:
    """The ledger of a configuration. NoLedger if it is not one that was served with these tokens.

    The first one is whichever is there or begins. Later, one that is lost or
    exchanged would mean every budget anew: only who says that it is new gets that.
    """
    known = tokens.ledgers()
    new = config.new_ledger or not known
    where = "in the database" if is_url(config.ledger) else f"at {config.ledger}"
    try:
        ledger = open_ledger(
            config.ledger,
            create=new,
            anchor=config.anchor,
            in_turns=True,
            kept_bytes=config.sessions_memory // config.workers,
            session_bytes=config.sessions_memory // config.workers // 2,
        )
    except NoLedger:
        raise NoLedger(f"there is no ledger {where}, but {_SERVED}") from None
    if not new and ledger.id not in known:
        ledger.close()
        raise NoLedger(f"the ledger {where} is another one: {_SERVED}")
    tokens.serve(ledger.id)
    return ledger


_SERVED = (
    "one was served with these tokens: put it back. If another is to begin, with every budget whole, "
    "say so: fpinq serve --new-ledger"
)


def _options(config: Config) -> dict[str, Mapping[str, Any]]:
    """What the engines of a server are made with: their ways are not for a record to choose."""
    steady = {"steady": True}
    share = config.resources.shared(config.workers).said()
    return {"duckdb": {**steady, **share}, "spark": {**config.spark, **steady}, "postgres": config.postgres}


def offer_of(data_set: DataSet) -> Offer:
    """A data set as it is registered."""
    tables = {
        name: Given(table.source, table.schema, table.dialect, table.lengths(), table.rows_at_most)
        for name, table in data_set.tables.items()
    }
    caps = {analyst: cap for analyst, cap in data_set.caps.items() if analyst != EVERYBODY}
    keys_caps = {analyst: cap for analyst, cap in data_set.keys_caps.items() if analyst != EVERYBODY}
    return Offer(
        data_set.name,
        data_set.budget,
        tables,
        data_set.unit,
        data_set.block_of,
        caps,
        data_set.caps.get(EVERYBODY),
        keys_caps,
        data_set.keys_caps.get(EVERYBODY),
    )


@contextmanager
def _about(name: str) -> Iterator[None]:
    """BadData that says of which data set."""
    try:
        yield
    except (BadData, OSError) as error:
        raise BadData(f"datasets.{name}: {error}") from None


def budget_told(state: RootState) -> BudgetTold:
    """A data set's budget, as every reply tells it."""
    concentrated = is_concentrated(state.registered.budget)
    return {
        "notion": "rho" if concentrated else "epsilon",
        "budget": str(state.registered.amount),
        "remaining": str(state.remaining),
    }


def schemas_of(name: str, shape: Shape) -> dict[str, Schema]:
    """The tables of a data set and their columns."""
    return dict(shape.tables) if isinstance(shape, Persons) else {name: shape}


def size_of(data_set: DataSet, shape: Shape) -> RootSize:
    """What is public about how large a data set is."""
    schemas = schemas_of(data_set.name, shape)
    return {
        name: TableSize.of(schemas[name], table.rows_at_most, table.lengths())
        for name, table in data_set.tables.items()
    }


def check_stated(data_set: DataSet, schemas: Mapping[str, Schema], untold: Sequence[str]) -> None:
    """BadData if types would be read off a file or frame: what a server promises, its owner states.

    Rows come from the owner's own program, which wrote their types; the ledger says that it was these.
    """
    for table in untold:
        if not is_rows(data_set.tables[table].source):
            what = "a file of text" if is_files(data_set.tables[table].source) else "a column of objects"
            raise BadData(
                f"{table}: {what} does not say of which types its columns are, and a server does not guess: "
                f"write schema = {toml(schemas[table])} (that is what can be read off the data)"
            )


def toml(schema: Schema) -> str:
    """A schema as the configuration has it."""
    return "{ " + ", ".join(f"{json.dumps(n)} = {json.dumps(t.value)}" for n, t in schema.columns) + " }"


def check_block(block: DataSet, shape: Shape, base: DataSet, base_shape: Shape) -> None:
    """ProgramError unless a block can be asked together with what grew by it: found before it is promised."""
    if block.unit != base.unit:
        raise _no_block(block, base, f"unit is {block.unit or 'a row'}, not {base.unit or 'a row'}")
    if block.engine != base.engine:
        raise _no_block(block, base, f"engine is {block.engine}, not {base.engine}")
    ours, theirs = _tables_of(block, shape), _tables_of(base, base_shape)
    if ours.keys() != theirs.keys():
        found, expected = (
            ", ".join(schemas_of(block.name, shape)),
            ", ".join(schemas_of(base.name, base_shape)),
        )
        raise _no_block(block, base, f"tables are {found}, not {expected}")
    for table, schema in ours.items():
        if dict(schema.columns) != dict(theirs[table].columns):
            found, expected = _columns(schema), _columns(theirs[table])
            raise _no_block(block, base, f"columns{table and f' of {table}'} are {found}, not {expected}")


def _no_block(block: DataSet, base: DataSet, why: str) -> ProgramError:
    return ProgramError(
        f"datasets.{block.name} cannot be a block of {base.name!r}: its {why}. "
        "Make it the same, or leave out block_of"
    )


def _tables_of(data_set: DataSet, shape: Shape) -> dict[str, Schema]:
    """The tables of a data set; where there is only one, its name does not matter."""
    found = schemas_of(data_set.name, shape)
    if len(found) > 1:
        return found
    (only,) = found.values()
    return {"": only}


def _columns(schema: Schema) -> str:
    return "(" + ", ".join(f"{name} {type_.value}" for name, type_ in schema.columns) + ")"


def check_columns(data_set: DataSet, schemas: Mapping[str, Schema]) -> None:
    """ProgramError if bounds or keys do not fit the columns: the owner's mistake, found at the start."""
    for table, given in data_set.tables.items():
        of_table = "" if list(data_set.tables) == [data_set.name] else f".tables.{table}"
        for column, known in given.columns.items():
            where = f"datasets.{data_set.name}{of_table}.columns.{column}"
            check_column(known, where)
            try:
                _check_types(known, schemas[table].type_of(column))
            except ProgramError as error:
                raise ProgramError(f"{where}: {error}") from None


def _check_types(known: Mapping[str, Any], type_: Type) -> None:
    """ProgramError if what is public of a column is not of its type."""
    bounds, keys = known.get("bounds"), known.get("keys")
    if bounds is not None:
        if type_ not in (Type.INT64, Type.FLOAT64):
            raise ProgramError(f"only numbers have bounds, and it is {type_.value}")
        if type_ is Type.INT64 and not INT64_MIN <= bounds[0] <= bounds[1] <= INT64_MAX:
            raise ProgramError("bounds of whole numbers have 64 bits")
    if keys is not None:
        whole = type_ is Type.FLOAT64  # 1 is as good as 1.0
        found = [checked_value(float(key) if whole and type(key) is int else key, type_) for key in keys]
        if has_duplicates(found):
            raise ProgramError("a key is there twice")
    if known.get("max_length") is not None and type_ is not Type.STRING:
        raise ProgramError(f"only text has a max_length, and it is {type_.value}")


def _public(known: Mapping[str, Any]) -> dict[str, Any]:
    """A column's metadata in the wire's values."""
    return {
        what: values if what == "max_length" else wire.to_json(tuple(values))
        for what, values in known.items()
        if what != "description"  # for people: a client reads the rest
    }
