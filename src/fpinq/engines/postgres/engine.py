"""Plans to exact integers in PostgreSQL, where the data lives.

One statement per measurement, whatever the number of parts, in one snapshot and in a transaction
that can only read. What comes back is the statistic; the records stay in the database.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf

from fpinq.engines import reference
from fpinq.engines.interface import Asked, Fingerprint
from fpinq.engines.owner import in_our_words, unreadable
from fpinq.engines.persons import persons_of
from fpinq.engines.postgres import sources, trial
from fpinq.engines.postgres.database import Database, Statements
from fpinq.engines.postgres.dialect import POSTGRES
from fpinq.engines.sql import statistics as lowered
from fpinq.engines.sql.plans import Lowering
from fpinq.engines.sql.relations import Stored, StoredPersons
from fpinq.engines.stopping import abandoned_after
from fpinq.engines.text import Dialect
from fpinq.model.costs import Costs
from fpinq.model.errors import BadData, BadExpression, BadQuery, DataChanged, EngineError, ProgramError
from fpinq.model.expressions import Schema, Type
from fpinq.model.plans import Persons, Plan, RootTable, roots_of
from fpinq.model.statistics import Integers, Statistic
from fpinq.model.transformations import Partitioning

# A statement is sent with no more texts; and no SELECT has more than 1,664 columns, some of which are ours.
MOST_TEXTS, MOST_COLUMNS = 2**16 - 1, 1_600
# How much longer than its time a measurement is waited for.
_UNREACHABLE_SECONDS = 5


class Postgres:
    """Turns plans into exact integers with PostgreSQL. Safe to use from several threads.

    Postgres("postgresql://role@host/database") measures tables of that database with the rights of
    that role; docs/operating/postgres.md says which it needs. Connections are made when first needed.
    contents= says what is in tables that are written to, {"people": "register of 2024"}: in a ledger they
    are known by that, and not by their records.
    """

    def __init__(self, address: str = "", *, contents: Mapping[str, str] | None = None) -> None:
        if type(address) is not str or not address:
            raise ProgramError(
                "which PostgreSQL? Say its address: engine=fp.Postgres('postgresql://reader@host/database'), "
                "or address = in [postgres] of a server's configuration"
            )
        self._database = Database(address)
        self._contents = _declared(contents or {})
        self._lock = threading.RLock()
        self._tried = False
        self._roots: dict[str, Stored | StoredPersons] = {}
        self._found: dict[str, tuple[sources.Found, ...]] = {}
        self._hashed: dict[sources.Place, sources.Found] = {}  # as they were then, until they are added

    # ── roots ────────────────────────────────────────────────────────────────────────

    @in_our_words(unreadable)
    def add_root(
        self,
        name: str,
        source: object,
        schema: Mapping[str, Type] | None = None,
        *,
        dialect: Dialect | None = None,
        lengths: Mapping[str, int] | None = None,
    ) -> Schema:
        """Protect a table of rows under a name; its public schema.

        source: the name of a table, or of a schema and a table in it. It is read where it is at each
        measurement. A schema says which columns there are, and of which types. BadData if the table is
        not as it says, or is not stored rows.
        """
        with self._lock, self._reading() as statements:
            self._check_new(name)
            found, stored = self._stored(statements, source, schema, lengths)
            self._roots[name], self._found[name] = stored, (found,)
            return stored.schema

    @in_our_words(unreadable)
    def add_persons(
        self,
        name: str,
        tables: Mapping[str, object],
        unit: str,
        schemas: Mapping[str, Mapping[str, Type]] | None = None,
        *,
        dialects: Mapping[str, Dialect] | None = None,
        lengths: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Persons:
        """Protect several tables about the same persons; the shape of the root.

        A person is all rows of all tables with the same value in the unit
        column. Rows where it is null belong to nobody and are left out.
        """
        with self._lock, self._reading() as statements:
            self._check_new(name)
            added = {
                table: self._stored(
                    statements, source, (schemas or {}).get(table), (lengths or {}).get(table)
                )
                for table, source in tables.items()
            }
            stored = {table: relation for table, (_, relation) in added.items()}
            shape = persons_of(unit, {table: relation.schema for table, relation in stored.items()})
            self._roots[name] = StoredPersons(shape, stored)
            self._found[name] = tuple(found for found, _ in added.values())
            return shape

    def forget(self, name: str) -> None:
        """Give up a root that was refused after all: its name is free again."""
        with self._lock:
            del self._roots[name], self._found[name]

    def costs(self) -> Costs:
        """What operators and steps take in PostgreSQL."""
        return POSTGRES.costs

    def owns(self, source: object) -> bool:
        """Whether only this engine can reach a source: a table that has a name."""
        return isinstance(source, str)

    @in_our_words(unreadable)
    def fingerprint(self, source: object) -> Fingerprint | str:
        """What the owner says that is in a table; else its schema, how many records it has, and the sum of
        their SHA-256s modulo 2²⁵⁶. All of it that can be read is read then.
        """
        place = sources.Place.of(source)
        if place in self._contents:
            return self._contents[place]
        with self._reading() as statements:
            found = sources.find(statements, place)
            stored = sources.as_source(sources.readable(found), place)
            lowering = Lowering(POSTGRES, {"t": stored})
            rows = lowering.rows(lowering.plan(RootTable("t")))
            ((records, *limbs),) = statements.rows(
                sources.fingerprint(f"({rows})", len(stored.schema.columns))
            )
            if not sources.holds(statements, found):
                raise _replaced(place)
        self._hashed[place] = found
        total = sum(int(limb or 0) << 32 * i for i, limb in enumerate(reversed(limbs)))
        return Fingerprint(stored.schema, records, total % 2**256)

    def _stored(
        self,
        statements: Statements,
        source: object,
        schema: Mapping[str, Type] | None,
        lengths: Mapping[str, int] | None,
    ) -> tuple[sources.Found, Stored]:
        found = sources.find(statements, sources.Place.of(source))
        if self._hashed.pop(found.place, found) != found:
            raise _replaced(found.place)
        columns = sources.convert(found, schema, lengths)
        return found, sources.as_source(columns, found.place)

    def _check_new(self, name: str) -> None:
        if name in self._roots:
            raise BadData(f"there is a root {name!r} already")

    # ── measuring ────────────────────────────────────────────────────────────────────

    @in_our_words(EngineError)
    def measure(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic], seconds: float = inf
    ) -> Sequence[Integers]:
        """Each statistic, exactly: of the table, or of the part of its number; a single one of all.

        Raises DataChanged, before it reads anything, if a table is another one than was protected;
        EngineError, with a reference into the owner's log and nothing else, if PostgreSQL fails or takes
        longer than seconds; it stops by itself then.
        """
        lowering = Lowering(POSTGRES, self._roots)
        measurement = lowered.lower(lowering, lowering.plan(plan), by, statistics)
        texts = _bound(lowering)

        def measured() -> Sequence[Integers]:
            with self._reading(seconds) as statements:
                self._check(statements, plan)
                rows = statements.rows(measurement.sql, texts)
                # A name may have become another table's while that waited for a lock; what was read is
                # locked now, and keeps its name until this transaction ends.
                self._check(statements, plan)
                return measurement.read(rows)

        # PostgreSQL ends it; this is for one that cannot be reached any more.
        return abandoned_after(seconds + _UNREACHABLE_SECONDS, measured)

    @in_our_words(EngineError)
    def rows(self, plan: Plan) -> reference.Relation:
        """The rows of a plan: the door for tests. Nothing that an analyst can reach calls it."""
        lowering = Lowering(POSTGRES, self._roots)
        table = lowering.plan(plan)
        sql = lowering.rows(table)
        with self._reading() as statements:
            return reference.Relation(table.schema, tuple(statements.rows(sql, _bound(lowering))))

    def explain(
        self, plan: Plan, by: Partitioning | None, statistics: Sequence[Statistic]
    ) -> tuple[str, str]:
        """The SQL text of a measurement and PostgreSQL's plan for it: for owners and tests."""
        lowering = Lowering(POSTGRES, self._roots)
        measurement = lowered.lower(lowering, lowering.plan(plan), by, statistics)
        with self._reading() as statements:
            lines = statements.rows(f"EXPLAIN {measurement.sql}", _bound(lowering))
        return measurement.sql, "\n".join(line for (line,) in lines)

    @in_our_words(unreadable)
    def rows_in(self, root: str) -> dict[str, int]:
        """How many rows each table of a root has: for its owner, who promised a number."""
        found = self._roots[root]
        tables = found.tables if isinstance(found, StoredPersons) else {root: found}
        with self._reading() as statements:
            return {
                table: int(statements.rows(f"SELECT count(*) FROM {source.relation} AS d")[0][0])
                for table, source in tables.items()
            }

    @in_our_words(unreadable)
    def check_unchanged(self, plan: Plan) -> None:
        """DataChanged if a table that the plan reads is not the one that was protected: it was dropped,
        replaced or altered. Its rows may be others; docs/operating/postgres.md says what that means.
        """
        with self._reading() as statements:
            self._check(statements, plan)

    def check_asked(self, asked: Iterable[Asked]) -> None:
        """BadExpression if a text is one that PostgreSQL does not have, BadQuery if there are too many.

        The database is not asked: it might not answer while its owner works on a table.
        """
        for each in asked:
            lowering = Lowering(POSTGRES, self._roots)
            lowered.lower(lowering, lowering.plan(each.plan), each.by, each.statistics)
            if len(_bound(lowering)) > MOST_TEXTS or lowering.parameters.widest > MOST_COLUMNS:
                raise BadQuery(
                    f"this is more than PostgreSQL can be asked in one statement: at most {MOST_COLUMNS:,} "
                    f"columns, candidates or values, and {MOST_TEXTS:,} texts"
                )

    def close(self) -> None:
        """Forget all tables, and give up the connections."""
        with self._lock:
            self._roots.clear()
            self._found.clear()
            self._database.close()

    # ── the database ─────────────────────────────────────────────────────────────────

    def _check(self, statements: Statements, plan: Plan) -> None:
        for root in roots_of(plan):
            if not all(sources.holds(statements, found) for found in self._found[root]):
                raise DataChanged(root)

    @contextmanager
    def _reading(self, seconds: float = inf) -> Iterator[Statements]:
        """A transaction in a database that has stood its trial."""
        with self._database.reading(seconds) as statements:
            if not self._tried:
                trial.check(statements)
                self._tried = True
            yield statements


def _replaced(place: sources.Place) -> BadData:
    return BadData(f"{str(place)!r} became another table while it was protected: protect it again")


def _declared(contents: Mapping[str, str]) -> dict[sources.Place, str]:
    """What the owner says that is in tables; ProgramError unless it is said in words."""
    if not isinstance(contents, Mapping) or not all(type(text) is str and text for text in contents.values()):
        raise ProgramError(
            "contents is a dict from tables to what is in them: {'people': 'register of 2024'}"
        )
    return {sources.Place.of(table): text for table, text in contents.items()}


def _bound(lowering: Lowering) -> list[str]:
    """What to execute a text with, in order; BadExpression if PostgreSQL has no such text."""
    texts = list(lowering.parameters.given().values())
    if any("\0" in text for text in texts):
        raise BadExpression("PostgreSQL has no text with a NUL character: leave it out, no row has one")
    return texts
