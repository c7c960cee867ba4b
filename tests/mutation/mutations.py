"""Every one-line mutant of a module: one operator, constant, call or statement changed."""

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
CALLS = {"min": "max", "max": "min", "all": "any", "any": "all"}


@dataclass(frozen=True)
class Mutation:
    """A module with one thing changed. The name does not depend on line numbers."""

    name: str
    line: int
    source: str


def mutations(source: str, file: str) -> Iterator[Mutation]:
    """All mutations of a module, in the order of its text."""
    tree = ast.parse(source)
    seen: dict[str, int] = {}
    for number, (place, node) in enumerate(_sites(tree, file)):
        for change, changed in _changes(node):
            mutated = ast.unparse(_replaced(tree, number, changed))
            name = f"{place}: {ast.unparse(node)[:90].splitlines()[0]} → {change}"
            seen[name] = seen.get(name, 0) + 1
            again = f" ({seen[name]})" if seen[name] > 1 else ""
            yield Mutation(name + again, getattr(node, "lineno", 0), mutated)


def _sites(tree: ast.AST, place: str) -> Iterator[tuple[str, ast.AST]]:
    """The nodes that can be changed, each with the function it is in; not annotations."""
    for field, child in _children(tree):
        if field in ("annotation", "returns") or _is_field(child):
            continue
        named = isinstance(child, ast.FunctionDef | ast.ClassDef)
        inside = f"{place}.{child.name}" if named else place  # type: ignore[attr-defined]
        yield inside, child
        yield from _sites(child, inside)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield field, each


def _replaced(tree: ast.Module, number: int, changed: ast.AST) -> ast.AST:
    """The tree with its number-th site changed."""
    copy = deepcopy(tree)
    target = next(node for i, (_, node) in enumerate(_sites(copy, "")) if i == number)
    for parent in ast.walk(copy):
        for field, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, field, changed)
            elif isinstance(value, list) and any(each is target for each in value):
                setattr(parent, field, [changed if each is target else each for each in value])
    return ast.fix_missing_locations(copy)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=rest) if type(op) in SWAPS:
            yield _shown(ast.Compare(left, [SWAPS[type(op)]()], rest))
        case ast.Compare(left=left, ops=[one, two], comparators=rest) if {type(one), type(two)} <= set(SWAPS):
            yield _shown(ast.Compare(left, [SWAPS[type(one)](), two], rest))
            yield _shown(ast.Compare(left, [one, SWAPS[type(two)]()], rest))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPS and not _is_text(node):
            yield _shown(ast.BinOp(left, SWAPS[type(op)](), right))
        case ast.BoolOp(op=op, values=values):
            yield _shown(ast.BoolOp(SWAPS[type(op)](), values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _shown(operand)
        case ast.Constant(value=bool() as value):
            yield _shown(ast.Constant(not value))
        case ast.Constant(value=int() as value):
            yield _shown(ast.Constant(value + 1))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in CALLS:
            yield _shown(ast.Call(ast.Name(CALLS[name]), args, keywords))
        case ast.Call(func=func, args=[first, second], keywords=keywords) if not _is_type_test(func):
            yield _shown(ast.Call(func, [second, first], keywords))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield _shown(ast.IfExp(test, orelse, body))
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue() | ast.AugAssign():
            yield "dropped", ast.Pass()


def _shown(node: ast.expr) -> tuple[str, ast.AST]:
    return ast.unparse(node)[:90].splitlines()[0], node


def _is_text(node: ast.AST) -> bool:
    """Whether strings are put together: what an error says is no rule."""
    return any(isinstance(each, ast.JoinedStr) for each in ast.walk(node)) or any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) for each in ast.walk(node)
    )


def _is_field(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "field"


def _is_type_test(func: ast.expr) -> bool:
    return isinstance(func, ast.Name) and func.id in ("isinstance", "zip", "getattr")
