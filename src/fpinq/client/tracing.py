"""Tracing, the one way to call a program's function: once, on symbolic rows, to get a row expression."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar

from fpinq.client.rows import BOOL, Call, Cell, Row, Symbolic, alike, cells, constant, plain
from fpinq.client.shorthand import Deferred, resolve
from fpinq.client.spelling import spell
from fpinq.model.errors import BadExpression, BadTransformation, FpinqError
from fpinq.model.expressions import Expression, Schema
from fpinq.model.frozen import dataclass
from fpinq.model.transformations import Fields

_tracing: ContextVar[bool] = ContextVar("fpinq_tracing", default=False)

_CONTAINERS = (tuple, list, set, dict)

# Something symbolic to call a function on, as one of the things that its call is given.
Symbol = Callable[[Call], object]


def refuse_inside_a_lambda() -> None:
    """BadExpression while a lambda is being traced: a function of a row may use no table."""
    if _tracing.get():
        raise BadExpression(
            "a lambda describes one row and cannot use a table: ask before, and use the answer in the lambda"
        )


def row(schema: Schema, prefix: str = "") -> Symbol:
    """A symbolic row of a schema."""
    return lambda call: Row(schema, call, prefix)


def trace(f: object, what: str, *symbols: Symbol) -> "Traced":
    """What a program's function gives for symbolic rows. It is called once; any error is a BadExpression."""
    call = Call()
    return Traced(_result(f, [symbol(call) for symbol in symbols]), call, what)


def _result(f: object, rows: Sequence[object]) -> object:
    token = _tracing.set(True)
    try:
        return called(f, *rows)
    except FpinqError:
        raise
    except NameError as error:
        if any(error.name in dir(row) for row in rows if isinstance(row, Row)):
            raise BadExpression(f"{error.name} is a column of a row: write x.{error.name}") from None
        raise _failed(error) from error
    except Exception as error:
        raise _failed(error) from error
    finally:
        _tracing.reset(token)


def _failed(error: Exception) -> BadExpression:
    return BadExpression(
        f"the function raised {type(error).__name__}: {error}. It is called once, on a symbolic row, "
        "so it can only use the row's columns, operators and methods: x.a.log(), not math.log(x.a)"
    )


def called(f: object, *rows: object) -> object:
    """What f gives for rows: f is a function, `_`, a column's name, or a dict or list of such."""
    if isinstance(f, Deferred):
        return resolve(f, *rows)
    if isinstance(f, str) and len(rows) == 1 and isinstance(rows[0], Row):
        return rows[0][f]  # a column by its name
    if isinstance(f, Mapping):
        return {name: called_or_constant(value, *rows) for name, value in f.items()}
    if isinstance(f, list):
        return [called_or_constant(value, *rows) for value in f]
    if callable(f):
        return f(*rows)
    raise BadExpression(f"expected a function of a row, such as lambda x: x.age, not {type(f).__name__}")


def called_or_constant(f: object, *rows: object) -> object:
    """The same of a column of a record, which may be a constant."""
    return called(f, *rows) if callable(f) or isinstance(f, Deferred | str | Mapping) else f


def named(f: object, more: Sequence[object] = ()) -> object:
    """Names of columns as a record of them; anything else is what it is."""
    listed = [*f, *more] if isinstance(f, list) else [f, *more]
    if listed and all(isinstance(name, str) for name in listed):
        if len(set(listed)) < len(listed):
            raise BadTransformation("a column is named twice")
        return {name: name for name in listed}
    if more or isinstance(f, list):
        raise BadTransformation(
            'select takes names of columns, select("age", "edu"), or one function that gives a dict: '
            'lambda x: {"age": x.age, "old": x.age > 64}'
        )
    return f


@dataclass(frozen=True)
class Traced:
    """What a function gave, in one call of it, and what it was for: to be taken as one thing or another."""

    result: object
    call: Call
    what: str

    def cell(self) -> Cell:
        """As one expression on the rows it was called on."""
        return self.cell_of(self.result)

    def condition(self) -> Expression:
        """As a condition on the rows."""
        cell = self.cell()
        if cell.type is not BOOL:
            raise BadExpression(
                f"{self.what} needs a condition, and {spell(cell.tree)} is {cell.type.value}: compare it"
            )
        return cell.tree

    def record(self) -> Fields:
        """As a record: of a dict, of a whole row, or of one expression, called `value`."""
        return tuple((name, cell.tree) for name, cell in self._record(self.result).items())

    def records(self) -> tuple[Fields, ...]:
        """As a list of records with the same columns and types."""
        assert isinstance(self.result, list | tuple)
        listed = [self._record(result) for result in self.result]
        names = list(listed[0])
        if any(set(named) != set(names) for named in listed):
            raise BadExpression(f"{self.what}: every record needs the same columns")
        columns = {name: alike(*(named[name] for named in listed)) for name in names}
        return tuple(tuple((name, columns[name][i].tree) for name in names) for i in range(len(listed)))

    def cell_of(self, part: object) -> Cell:
        """A part of what the function gave, as one expression on the rows."""
        if isinstance(part, Deferred):
            raise BadExpression("_ stands for the row of one function: do not use it inside a lambda")
        if isinstance(part, Row):
            raise BadExpression(f"{self.what} needs an expression: say which column, as in x.age")
        if part is None:
            raise BadExpression(f"{self.what}: the function gave None; it has to return an expression")
        if not isinstance(part, Cell):
            if isinstance(part, _CONTAINERS):
                raise BadExpression(
                    f"{self.what} needs one expression, and the function gave a {type(part).__name__}: "
                    "return x.age, say; a dict of several is for select and with_columns"
                )
            raise BadExpression(
                f"{self.what}: the function gave a constant, the same for every row; "
                "it has to use the row, as in lambda x: x.age"
            )
        if part.call is None:
            raise BadExpression(f"{self.what}: the expression uses no column of the row")
        if part.call is not self.call:
            raise BadExpression(
                f"{self.what}: the function uses a row of another table or lambda; it sees its own row only"
            )
        return part

    def _record(self, part: object) -> dict[str, Cell]:
        if isinstance(part, Row):
            return {name: self.cell_of(cell) for name, cell in cells(part).items()}
        if isinstance(part, tuple | list | set):
            raise BadExpression(
                f"{self.what}: the function gave a {type(part).__name__}; "
                'return one expression, or a dict for several: {"a": x.a, "b": x.b}'
            )
        if not isinstance(part, Mapping):
            return {"value": self.cell_of(part)}
        if not part:
            raise BadExpression(f"{self.what} needs one or more columns: the function gave an empty dict")
        return {self._name(name): self._value(name, plain(value)) for name, value in part.items()}

    def _name(self, name: object) -> str:
        if type(name) is not str or not name:
            raise BadExpression(f"{self.what} needs column names that are texts")
        return name

    def _value(self, name: object, value: object) -> Cell:
        """A column of a record: an expression, or a constant."""
        if isinstance(value, Symbolic):
            return self.cell_of(value)
        if value is None:
            raise BadExpression(f"column {name!r} is None: None alone has no type")
        if isinstance(value, _CONTAINERS):
            raise BadExpression(
                f"column {name!r} is a {type(value).__name__}: a column is one expression, or a constant"
            )
        return constant(value)
