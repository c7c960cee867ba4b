"""A trial: before DuckDB is trusted with anybody's data it answers questions whose answers are known.

There is one for each way in, taken when first somebody's data comes that way, in the database that
the data comes into. The file is one that DuckDB 2.0.0 misreads where filters are moved into the reading
(docs/decisions/0060): texts that are not in a dictionary, all equal but for a null. The
rows are ones that 1.5 misreads as a masked array. Both come in as data does.
"""

import base64
import os
import zlib
from typing import Any

from fpinq.engines import reference
from fpinq.model.errors import UnfitEngine
from fpinq.model.expressions import Apply, Column, Expression, Literal, Schema, Type
from fpinq.model.plans import Plan, RootTable, Term
from fpinq.model.statistics import Records
from fpinq.model.transformations import Distinct, Take, Where

_FILE = (
    "eNqVks9qg0AQxsdVt0KtkMIsLnjwolhoQlOop730nkPoMTebCgnYaE3apLc8SJ6kD5Fn6vgPSQiFLrM7w2/9vp1dnD6/jBEw"
    "xvgeLSo4ci9mkf6drt1qGQwAgNHUr3RaiZwmksxwVmmdP7Q3e83Q2xqaURFuVsRuSeOmUPWduJbZbvaVYNEF2p913aHzjIac"
    "PIHL1/NF+p4gB7QD5ppFlixXAUy86pOavKXZJumIUZHtIs9SEJb0pArBQ1sGHGSrRdoQO7ELLXV2e+nRPQAZKHEruQwZJ8dO"
    "78j2pFp/0CjCvXbRwqkt+ImF0bZQt1Zb/GgU4YGpf71a3+NdZy+OurBCixJEfpGUH5/pZjgvimFSlvnW/0rL9TJf+Y/x6GE0"
    "loqeqQl41QCm9EP9Ao/SSsw="
)
_SCHEMA = Schema.of({"plain": Type.STRING, "delta": Type.STRING, "whole": Type.INT64})
_ROWS = (("yes", "yes", 5), ("yes", None, 5), ("yes", "yes", None), (None, "yes", 5))


def check_file(engine: Any, version: str, path: str) -> None:
    """UnfitEngine if the engine's answers about a file, which it may read there, are not the reference's."""
    with open(path, "wb") as file:
        file.write(zlib.decompress(base64.b64decode(_FILE)))
    _check(engine, version, "file", path)


def check_rows(engine: Any, version: str) -> None:
    """UnfitEngine if the engine's answers about rows in memory are not the reference's."""
    _check(engine, version, "rows", [dict(zip(_SCHEMA.names(), row, strict=True)) for row in _ROWS])


def _check(engine: Any, version: str, kind: str, source: object) -> None:
    root = os.urandom(16).hex()  # a name that is nobody's
    shape = engine.add_root(root, source, dict(_SCHEMA.columns))
    try:
        if shape != _SCHEMA or _is_wrong(engine, root):
            raise UnfitEngine(f"DuckDB {version} answers wrongly where the answer is known: {kind}")
    finally:
        engine.forget(root)


def _is_wrong(engine: Any, root: str) -> bool:
    database = {root: reference.Relation(_SCHEMA, _ROWS)}
    return any(
        engine.measure(plan, None, [Records()])
        != reference.measure(reference.compute(plan, database), None, [Records()])
        for plan in _plans(RootTable(root))
    )


def _plans(table: Plan) -> list[Plan]:
    plans: list[Plan] = [Term(Distinct(), (table,)), Term(Where(_null("plain")), (Term(Take(1), (table,)),))]
    for name, value in (("plain", "yes"), ("delta", "yes"), ("whole", 5)):
        same = Apply("equal", (Column(name), Literal.of(value)))
        filled = Apply("fill_null", (same, Literal.of(True)))
        plans += [Term(Where(_null(name)), (table,)), Term(Where(filled), (table,))]
    return plans


def _null(column: str) -> Expression:
    return Apply("is_null", (Column(column),))
