"""Joins: which tables FROM puts together, on which keys, and how many records of a key each side may use."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from sqlglot import exp

from fpinq.client.joins import first, joined_inside
from fpinq.client.keys import public_rows
from fpinq.client.rows import Cell, Row, constant
from fpinq.model.expressions import Column, Expression, Value
from fpinq.model.frozen import dataclass
from fpinq.model.operators import evaluate
from fpinq.model.transformations import First
from fpinq.sql.aggregates import has_aggregate
from fpinq.sql.expressions import cell
from fpinq.sql.relations import (
    Reader,
    belongs_to,
    conjuncts,
    filtered,
    names_in,
    of_row,
    placed,
    source_of,
    subquery,
    with_ctes,
)
from fpinq.sql.scopes import Domain, Name, Relation, Rows, alike, selected

# Of a public table with more rows than this, the values are not taken as keys.
MAX_PUBLIC = 100_000

Pair = tuple[exp.Expr, exp.Expr]


def joined(reader: Reader, query: exp.Select, tests: list[exp.Expr]) -> Relation:
    """The tables of FROM, joined as ON, USING and WHERE say, with the records that WHERE leaves."""
    joins = query.args.get("joins") or []
    first_item = source_of(reader, query.args["from_"].this)
    others = [source_of(reader, each.this) for each in joins]
    _check_aliases(reader, query, [first_item, *others])
    tests = list(tests)
    owned = _owned([first_item, *others], tests)
    whole = _before(reader, first_item, owned.get(0, ()), tests)
    waiting: list[tuple[exp.Join, Relation]] = []
    for number, (join, other) in enumerate(zip(joins, others, strict=True), 1):
        if not join.side:
            other = _before(reader, other, owned.get(number, ()), tests)
        if _is_listed(join):
            waiting.append((join, other))
            continue
        whole = _listed(reader, whole, waiting, tests)
        waiting = []
        whole = _explicit(reader, join, whole, other)
    whole = _listed(reader, whole, waiting, tests)
    subqueries = [test for test in tests if _membership(test) is not None]
    whole = filtered(reader, whole, [test for test in tests if test not in subqueries])
    for test in subqueries:
        whole = _member(reader, whole, test)
    return whole


def _check_aliases(reader: Reader, query: exp.Select, relations: Sequence[Relation]) -> None:
    seen: list[str] = []
    for relation in relations:
        for table in relation.tables():
            if table and any(alike(table, other) for other in seen):
                raise reader.error(f"two tables are called {table!r}: give one another name with AS", query)
            seen.append(table)


def _owned(every: Sequence[Relation], tests: Sequence[exp.Expr]) -> dict[int, list[exp.Expr]]:
    """The conditions that are about one of several tables alone, by its number."""
    found: dict[int, list[exp.Expr]] = {}
    for test in tests if len(every) > 1 else ():
        named = names_in(test)
        if named and not _has_query(test):
            owners = {i for name in named for i, each in enumerate(every) if belongs_to(each, name)}
            if len(owners) == 1:
                found.setdefault(owners.pop(), []).append(test)
    return found


def _before(reader: Reader, relation: Relation, own: Sequence[exp.Expr], tests: list[exp.Expr]) -> Relation:
    """The records of one table that WHERE leaves, before it is joined; these conditions are done with."""
    tests[:] = [test for test in tests if all(test is not each for each in own)]
    return filtered(reader, relation, own)


def _has_query(node: exp.Expr) -> bool:
    return node.find(exp.Query) is not None


# ── which keys ───────────────────────────────────────────────────────────────────────


def _is_listed(join: exp.Join) -> bool:
    """Whether a table is only listed: FROM a, b, or CROSS JOIN."""
    no_keys = join.args.get("on") is None and not join.args.get("using")
    return no_keys and not join.side and join.kind in ("", "CROSS")


def _listed(
    reader: Reader, whole: Relation, waiting: list[tuple[exp.Join, Relation]], tests: list[exp.Expr]
) -> Relation:
    """Tables that are listed, each joined once WHERE has an equality with one that is there.

    Public ones come last: beside one, a table is no longer inside each person.
    """
    waiting = sorted(waiting, key=lambda each: each[1].public)
    while waiting:
        found = next(((i, pairs) for i, (_, other) in enumerate(waiting)
                      if (pairs := _equalities(reader, whole, other, tests))), None)  # fmt: skip
        if found is None:
            raise reader.error(
                "nothing joins this table: every record would meet every other. Say on which keys, "
                "JOIN … ON a.id = b.id, or a.id = b.id in WHERE",
                waiting[0][0].this,
            )
        number, pairs = found
        join, other = waiting.pop(number)
        for test, _ in pairs:
            tests.remove(test)
        whole = _join(reader, join, whole, other, [pair for _, pair in pairs], outer=False)
    return whole


def _equalities(
    reader: Reader, left: Relation, right: Relation, tests: Sequence[exp.Expr]
) -> list[tuple[exp.Expr, Pair]]:
    """The conditions that say which keys are equal, with the key of each side."""
    found = [(test, _sides(left, right, test)) for test in tests]
    return [(test, pair) for test, pair in found if pair is not None]


def _sides(left: Relation, right: Relation, test: exp.Expr, *, nested: bool = False) -> Pair | None:
    """The keys of an equality between two tables; in a nested one, what both could be is its own."""
    while isinstance(test, exp.Paren):
        test = test.this
    if not isinstance(test, exp.EQ) or _has_query(test):
        return None
    for a, b in ((test.this, test.expression), (test.expression, test.this)):
        of_a, of_b = names_in(a), names_in(b)
        if (
            of_a and of_b
            and all(belongs_to(left, name) and not belongs_to(right, name) for name in of_a)
            and all(belongs_to(right, name) and (nested or not belongs_to(left, name)) for name in of_b)
        ):  # fmt: skip
            return a, b
    return None


def _explicit(reader: Reader, join: exp.Join, left: Relation, right: Relation) -> Relation:
    side, kind = join.side, join.kind
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise reader.error(
            f"{f'{side} {kind}'.strip()} JOIN is not supported: [INNER] JOIN and LEFT JOIN are", join.this
        )
    outer = side == "LEFT"
    using = join.args.get("using") or []
    if using:
        pairs: list[Pair] = [(exp.Column(this=each.copy()), exp.Column(this=each.copy())) for each in using]
        return _merged(_join(reader, join, left, right, pairs, outer), using, outer)
    on = join.args.get("on")
    if on is None:
        raise reader.error("a JOIN needs ON or USING: on which keys?", join.this)
    tests = conjuncts(on)
    found = _equalities(reader, left, right, tests)
    rest = [test for test in tests if all(test is not used for used, _ in found)]
    if not found:
        raise reader.error(
            "a JOIN is on equal keys, ON a.id = b.id: with other conditions alone one record may meet all", on
        )
    if outer and rest:
        for test in rest:
            if not all(belongs_to(right, name) and not belongs_to(left, name) for name in names_in(test)):
                raise reader.error(
                    "ON of a LEFT JOIN takes equal keys and conditions on the right table", test
                )
        right, rest = filtered(reader, right, rest), []
    whole = _join(reader, join, left, right, [pair for _, pair in found], outer)
    return filtered(reader, whole, rest)


def _merged(whole: Relation, using: Sequence[exp.Identifier], outer: bool) -> Relation:
    """Keys that USING names are one column, the left one; of a LEFT JOIN, v.id is null where v has none."""
    first_of: dict[str, str] = {}
    names = []
    for name in whole.names:
        key = next((each.name.lower() for each in using if alike(each.name, name.name)), None)
        if key is not None and key in first_of:
            name = name._replace(column=name.column if outer else first_of[key], merged=True)
        elif key is not None:
            first_of[key] = name.column
        names.append(name)
    return replace(whole, names=tuple(names))


# ── joining two ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Keys:
    """The keys of both sides, as functions of their rows."""

    reader: Reader
    left: Relation
    right: Relation
    pairs: Sequence[Pair]

    def both(self, left: Row, right: Row) -> list[tuple[Cell, Cell]]:
        """The keys, each pair of one type."""
        of_left = Rows(self.reader, self.left, left)
        of_right = Rows(self.reader, self.right, right)
        found = []
        for a, b in self.pairs:
            x, y = cell(a, of_left), cell(b, of_right)
            if x.type is not y.type:
                raise self.reader.error(
                    f"keys of a join are of one type: {x.type.value} here and {y.type.value} there; CAST one",
                    a,
                )
            found.append((x, y))
        return found

    def of_left(self, row: Row) -> dict[str, Cell]:
        """Those of the left, by name."""
        scope = Rows(self.reader, self.left, row)
        return {f"key{i}": cell(a, scope) for i, (a, _) in enumerate(self.pairs)}

    def of_right(self, row: Row) -> dict[str, Cell]:
        """Those of the right, by name."""
        scope = Rows(self.reader, self.right, row)
        return {f"key{i}": cell(b, scope) for i, (_, b) in enumerate(self.pairs)}


def _join(
    reader: Reader, node: exp.Join, left: Relation, right: Relation, pairs: Sequence[Pair], outer: bool
) -> Relation:
    keys = _Keys(reader, left, right, pairs)
    of_left, of_right = _truncations(reader, node.this, keys)
    with placed(reader.text, node.this):
        table = left.table.join(
            right.table, on=(keys.of_left, keys.of_right), left=of_left, right=of_right, outer=outer
        )
    # Columns of the left keep their names; those of the right, after them, may have others.
    columns = right.table.facts.schema.names()
    shown = dict(zip(columns, table.facts.schema.names()[-len(columns) :], strict=True))
    names = [Name(each.table, each.name, shown[each.column], each.merged) for each in right.names]
    there = [*selected(right.domains, {shown[c]: Column(c) for c in columns}), *_rows_of(right, shown)]
    if outer:
        there = [replace(each, nullable=True) for each in there]
    here = (*left.domains, *_rows_of(left, {}))
    return Relation(table, (*left.names, *names), (*here, *there), _unique(keys))


def _rows_of(relation: Relation, shown: Mapping[str, str]) -> list[Domain]:
    """What is public of the columns of a public table, after a join: its rows."""
    rows = public_rows(relation.table.facts) if relation.public else ()
    if not relation.public or len(rows) > MAX_PUBLIC:
        return []
    of = tuple(Column(shown.get(name, name)) for name in relation.table.facts.schema.names())
    return [Domain(of, rows, tuple(range(len(of))))]


def _unique(keys: _Keys) -> frozenset[str] | None:
    """The columns that stay unique: of the left, where the right has each key once."""
    if keys.left.unique is None or not _is_unique(keys.right, _columns(keys, right=True)):
        return None
    return keys.left.unique


def _columns(keys: _Keys, right: bool) -> frozenset[str]:
    found = keys.both(keys.left.row(), keys.right.row())
    trees = [pair[right].tree for pair in found]
    return frozenset(tree.name for tree in trees if isinstance(tree, Column))


def _is_unique(relation: Relation, columns: frozenset[str]) -> bool:
    return relation.unique is not None and relation.unique <= columns


def _truncations(reader: Reader, node: exp.Expr, keys: _Keys) -> tuple[First | None, First | None]:
    """How many records of a key each side may use: all beside a public table and inside a person."""
    left, right = keys.left, keys.right
    rows = left.row(), right.row()
    found = keys.both(*rows)
    lefts = {f"key{i}": a for i, (a, _) in enumerate(found)}
    rights = {f"key{i}": b for i, (_, b) in enumerate(found)}
    inside = joined_inside(left.table.facts, right.table.facts, lefts, rights)
    if left.public or right.public or inside is not None:
        return _said(reader, left, lefts, right.public), _said(reader, right, rights, left.public)
    bounds = [_at_most(reader, each, _columns(keys, right=i == 1)) for i, each in enumerate((left, right))]
    if None in bounds:
        sides = [_tables(each, _columns(keys, right=i == 1)) for i, each in enumerate((left, right))]
        without = [side for side, bound in zip(sides, bounds, strict=True) if bound is None]
        hint = ", ".join(f"at_most({each}, 10)" for each in without)
        raise reader.error(
            f"an unbounded join: nothing says how many records of {' and of '.join(without)} share a key, "
            f"and one record may meet them all. Say it, SELECT /*+ {hint} */ … (more are left out); or join "
            "on the unit of the same persons, or with a public table",
            node,
        )
    return first(bounds[0]), first(bounds[1])  # type: ignore[arg-type]


def _tables(relation: Relation, columns: frozenset[str]) -> str:
    """Which tables columns are of, in words."""
    named = dict.fromkeys(name.table for name in relation.names if name.column in columns and name.table)
    return " or ".join(named) or " or ".join(relation.tables()) or "the sub-query"


def _said(reader: Reader, relation: Relation, keys: Mapping[str, Cell], beside_public: bool) -> First | None:
    """How many records of a key one side has: of a public table what it has, of another what a hint says."""
    trees = [key.tree for key in keys.values()]
    if relation.public and not beside_public:
        return first(_most_of_a_key(relation, tuple(trees)))
    columns = frozenset(tree.name for tree in trees if isinstance(tree, Column))
    if _is_unique(relation, columns):
        return first(1)
    hints = _hinted(reader, relation, columns, ["{}.{}"])
    return first(min(hints)) if hints else None


# By public table and key, as long as there is the table.
_most: WeakKeyDictionary[object, dict[tuple[Expression, ...], int]] = WeakKeyDictionary()


def _most_of_a_key(relation: Relation, trees: tuple[Expression, ...]) -> int:
    """How many rows of a public table share a key, at the most."""
    known = _most.setdefault(relation.table.facts.binding, {})
    if trees not in known:
        known[trees] = max(Counter(_public_keys(relation, trees)).values(), default=1)
    return known[trees]


def _public_keys(relation: Relation, trees: Sequence[Expression]) -> Iterator[tuple[Value, ...]]:
    """The keys of the rows of a public table."""
    names, rows = relation.table.facts.schema.names(), public_rows(relation.table.facts)
    columns = [names.index(tree.name) for tree in trees if isinstance(tree, Column)]
    if len(columns) == len(trees):  # as most are
        return (tuple([row[i] for i in columns]) for row in rows)
    named = (dict(zip(names, row, strict=True)) for row in rows)
    return (tuple([evaluate(tree, row) for tree in trees]) for row in named)


def _at_most(reader: Reader, relation: Relation, columns: frozenset[str]) -> int | None:
    """The hint of one side: of the table that its keys are of."""
    if _is_unique(relation, columns):
        return 1
    return min(_hinted(reader, relation, columns, ["{}", "{}.{}"]), default=None)


def _hinted(reader: Reader, relation: Relation, columns: frozenset[str], forms: Sequence[str]) -> list[int]:
    """What hints say: at_most(table, n) of any key of a table, at_most(table.column, n) of this one."""
    names = [name for name in relation.names if name.column in columns]
    spelled = {form.format(name.table, name.name).lower() for name in names for form in forms}
    return [number for table, number in reader.hints.at_most.items() if table in spelled]


# ── IN (SELECT …) and EXISTS ─────────────────────────────────────────────────────────


def _membership(test: exp.Expr) -> tuple[exp.In | exp.Exists, bool] | None:
    """A condition that asks whether something is in a sub-query, and whether it must be."""
    keep = True
    while isinstance(test, exp.Paren | exp.Not):
        keep ^= isinstance(test, exp.Not)
        test = test.this
    is_one = isinstance(test, exp.Exists) or (isinstance(test, exp.In) and test.args.get("query") is not None)
    return (test, keep) if is_one and isinstance(test, exp.In | exp.Exists) else None


def _member(reader: Reader, whole: Relation, test: exp.Expr) -> Relation:
    found = _membership(test)
    assert found is not None
    node, keep = found
    other, pairs = (
        _listed_in(reader, whole, node) if isinstance(node, exp.In) else _existing(reader, whole, node)
    )
    keys = _Keys(reader, whole, other, pairs)
    keys.both(whole.row(), other.row())  # of one type
    with placed(reader.text, node):
        keyed = other.table.select(keys.of_right).distinct()
        names = tuple(Name("", name, name) for name in keyed.facts.schema.names())
        right = Relation(keyed, names, unique=frozenset(name.column for name in names))
        columns = [exp.column(name.name, quoted=True) for name in names]
        keys = _Keys(reader, whole, right, [(a, b) for (a, _), b in zip(pairs, columns, strict=True)])
        null_keys = isinstance(node, exp.In) and not keep
        listed = list(public_rows(right.table.facts)) if null_keys and right.public else [()]
        if not listed:
            return whole  # nothing is in an empty list, and that is known of a null, too
        if (None,) in listed:  # and nothing is known to be in no list with a null in it
            return replace(whole, table=whole.table.where(
                lambda row: of_row(constant(False), row)))  # fmt: skip
        if null_keys and not right.public and not _never_null(other, pairs, node.args["query"]):
            raise reader.error(
                "NOT IN is true of nothing once the sub-query has a null, and whether it has one is private: "
                "leave nulls out, (SELECT y FROM … WHERE y IS NOT NULL), or write NOT EXISTS",
                node,
            )
        if null_keys:  # a null is not known to be in none
            whole = replace(whole, table=whole.table.where(
                lambda row: ~next(iter(keys.of_left(row).values())).is_null()))  # fmt: skip
            keys = replace(keys, left=whole)
        if right.public:
            on = (keys.of_left, keys.of_right)
            table = whole.table.semi_join(right.table, on) if keep else whole.table.anti_join(right.table, on)
            return replace(whole, table=table)
        of_left, of_right = _truncations(reader, node, keys)
        table = whole.table.join(right.table, on=(keys.of_left, keys.of_right), left=of_left, right=of_right,
                                 outer=not keep)  # fmt: skip
        kept = whole.table.facts.schema.names()
        added = [name for name in table.facts.schema.names() if name not in kept]
        if not keep:
            table = table.where(lambda row: row[added[0]].is_null())
        return replace(whole, table=table.select(list(kept)))


def _never_null(other: Relation, pairs: Sequence[Pair], query: exp.Expr) -> bool:
    """Whether a list has no nulls: units of persons have none, and a condition may say so."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select):
        return False
    inside = other.table.facts.within
    where = query.args.get("where")
    tests = [] if where is None else conjuncts(where.this)
    said = [test.this.this for test in tests if isinstance(test, exp.Not) and isinstance(test.this, exp.Is)
            and isinstance(test.this.expression, exp.Null)]  # fmt: skip
    listed = [each.this if isinstance(each, exp.Alias) else each for each in query.expressions]
    columns = [Column(name.column) for name in other.names]
    return len(listed) == len(columns) == len(pairs) and all(
        node in said or (inside is not None and inside.is_unit(column))
        for node, column in zip(listed, columns, strict=True)
    )


def _listed_in(reader: Reader, whole: Relation, node: exp.In) -> tuple[Relation, list[Pair]]:
    """x IN (SELECT y …): what is listed, and the equality that it means."""
    other = subquery(reader, node.args["query"]).called("")
    keys = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    if len(keys) != len(other.names):
        raise reader.error(
            f"IN compares {len(keys)} column(s), and the sub-query has {len(other.names)}", node
        )
    columns = [exp.column(name.name, quoted=True) for name in other.names]
    return other, list(zip(keys, columns, strict=True))


def _existing(reader: Reader, whole: Relation, node: exp.Exists) -> tuple[Relation, list[Pair]]:
    """EXISTS (SELECT … WHERE outer.x = inner.y): the inner table, and the equalities with the outer one."""
    query = node.this
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("having"):
        raise reader.error("EXISTS takes SELECT … FROM … WHERE outer.id = inner.id", node)
    if any(map(has_aggregate, query.expressions)) or query.args.get("limit") or query.args.get("offset"):
        raise reader.error(
            "in EXISTS leave out aggregates, of which there is always a row, and LIMIT and OFFSET", node
        )
    inner_reader = with_ctes(reader, query)
    where = query.args.get("where")
    tests = [] if where is None else conjuncts(where.this)
    tables = [source_of(inner_reader, each.this) for each in
              [query.args["from_"], *(query.args.get("joins") or [])]]  # fmt: skip
    inner = Relation(tables[0].table, tuple(name for each in tables for name in each.names))
    correlated = [test for test in tests if any(not belongs_to(inner, name) for name in names_in(test))]
    pairs = []
    for test in correlated:
        pair = _sides(whole, inner, test, nested=True)
        if pair is None:
            raise reader.error("a sub-query is joined to its outer query by equal keys, o.id = i.id", test)
        pairs.append(pair)
    if not pairs:
        raise reader.error("EXISTS needs a key that both share: WHERE outer.id = inner.id", node)
    other = joined(inner_reader, query, [test for test in tests if test not in correlated])
    return other, pairs
