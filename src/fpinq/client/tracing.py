"""Calling a program's function: once, on symbolic rows, to get a tree of the row language."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from fpinq.client.rows import BOOL, Cell, Row, Scope, Symbolic, alike, cells, constant, plain
from fpinq.client.shorthand import Deferred, resolve
from fpinq.client.spelling import spell
from fpinq.model.errors import BadExpression, FpinqError
from fpinq.model.expressions import Expression, Schema
from fpinq.model.transformations import Record

_tracing: ContextVar[bool] = ContextVar("fpinq_tracing", default=False)


def refuse_inside_a_lambda() -> None:
    """BadExpression while a lambda is being traced: a function of a row may use no table."""
    if _tracing.get():
        raise BadExpression(
            "a lambda describes one row and cannot use a table: ask before, and use the answer in the lambda"
        )


def trace(f: Any, *rows: Any) -> Any:
    """What a program's function gives for symbolic rows. It is called once; any error is a BadExpression."""
    token = _tracing.set(True)
    try:
        return called(f, *rows)
    except FpinqError:
        raise
    except Exception as error:
        raise BadExpression(
            f"the function raised {type(error).__name__}: {error}. It is called once, on a symbolic row, "
            "so it can only use the row's columns, operators and methods"
        ) from error
    finally:
        _tracing.reset(token)


def called(f: Any, *rows: Any) -> Any:
    """What f gives for rows: f is a function, `_`, a column's name, or a dict or list of such."""
    if isinstance(f, Deferred):
        return resolve(f, *rows)
    if isinstance(f, str) and len(rows) == 1 and isinstance(rows[0], Row):
        return rows[0][f]  # a column by its name
    if isinstance(f, Mapping):
        return {name: _called_or_constant(value, *rows) for name, value in f.items()}
    if isinstance(f, list):
        return [_called_or_constant(value, *rows) for value in f]
    if callable(f):
        return f(*rows)
    raise BadExpression(f"expected a function of a row, such as lambda x: x.age, not {type(f).__name__}")


def _called_or_constant(f: Any, *rows: Any) -> Any:
    return called(f, *rows) if callable(f) or isinstance(f, Deferred | str | Mapping) else f


def traced_cell(f: Any, schema: Schema, what: str) -> Cell:
    """The one expression that f gives for a row of this schema."""
    scope = Scope()
    return checked_cell(trace(f, Row(schema, scope)), scope, what)


def checked_predicate(result: Any, scope: Scope) -> Expression:
    """A traced result as a condition on the rows of scope."""
    cell = checked_cell(result, scope, "where")
    if cell._type is not BOOL:
        raise BadExpression(
            f"where needs a condition, and {spell(cell._tree)} is {cell._type.value}: compare it"
        )
    return cell._tree


def record_of(result: Any, scope: Scope, what: str) -> Record:
    """A traced result as a record."""
    return tuple((name, cell._tree) for name, cell in record_cells(result, scope, what).items())


def record_cells(result: Any, scope: Scope, what: str) -> dict[str, Cell]:
    """A traced result as named cells."""
    if isinstance(result, Row):
        return {name: checked_cell(cell, scope, what) for name, cell in cells(result).items()}
    if not isinstance(result, Mapping):
        return {"value": checked_cell(result, scope, what)}
    if not result:
        raise BadExpression(f"{what} needs one or more columns: the function gave an empty dict")
    named: dict[str, Cell] = {}
    for name, value in result.items():
        if type(name) is not str or not name:
            raise BadExpression(f"{what} needs column names that are texts")
        value = plain(value)
        if not isinstance(value, Symbolic):
            if value is None:
                raise BadExpression(f"column {name!r} is None: None alone has no type")
            _refuse_containers(value, what)
            value = constant(value)
            named[name] = value
        else:
            named[name] = checked_cell(value, scope, what)
    return named


def checked_cell(result: Any, scope: Scope, what: str) -> Cell:
    """result as an expression on the rows of scope."""
    if isinstance(result, Deferred):
        raise BadExpression("_ stands for the row of one function: do not use it inside a lambda")
    if isinstance(result, Row):
        raise BadExpression(f"{what} needs an expression: say which column, as in x.age")
    if result is None:
        raise BadExpression(f"{what}: the function gave None; it has to return an expression")
    if not isinstance(result, Cell):
        _refuse_containers(result, what)
        raise BadExpression(
            f"{what}: the function gave a constant, the same for every row; "
            "it has to use the row, as in lambda x: x.age"
        )
    if result._scope is None:
        raise BadExpression(f"{what}: the expression uses no column of the row")
    if result._scope is not scope:
        raise BadExpression(
            f"{what}: the function uses a row of another table or lambda; it sees its own row only"
        )
    return result


def _refuse_containers(result: object, what: str) -> None:
    if isinstance(result, tuple | list | set | dict):
        raise BadExpression(
            f"{what}: the function gave a {type(result).__name__}; "
            'return one expression, or a dict for several: {"a": x.a, "b": x.b}'
        )


def records_of(results: Sequence[Any], scope: Scope, what: str) -> tuple[Record, ...]:
    """Several traced results as records with the same columns and types."""
    listed = [record_cells(result, scope, what) for result in results]
    names = list(listed[0])
    if any(set(named) != set(names) for named in listed):
        raise BadExpression(f"{what}: every record needs the same columns")
    columns = {name: alike(*(named[name] for named in listed)) for name in names}
    return tuple(tuple((name, columns[name][i]._tree) for name in names) for i in range(len(listed)))
