"""JSON Schemas of classes: actions and observations by their forms, questions and replies by their fields."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import Enum
from fractions import Fraction
from inspect import getdoc
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from fpinq.ledger.forms import FORMS, form_of
from fpinq.model.expressions import Value
from fpinq.model.keys import Key

Schema = dict[str, Any]

_SCALARS: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    Fraction: {"type": "string", "pattern": r"^-?[0-9]+(/[0-9]+|\.[0-9]+)?$", "examples": ["1/3"]},
    range: {
        "type": "object",
        "required": ["range"],
        "additionalProperties": False,
        "properties": {
            "range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
        },
    },
    date: {
        "type": "object",
        "required": ["date"],
        "additionalProperties": False,
        "properties": {"date": {"type": "string", "format": "date"}},
    },
}
_TAGGED = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
    "properties": {tag: {"type": "string"} for tag in ("date", "timestamp", "float")},
}
# A value of a row, as the wire has it.
_VALUE: Schema = {"anyOf": [{"type": ["null", "boolean", "number", "string"]}, _TAGGED]}
_KEY: Schema = {"anyOf": [*_VALUE["anyOf"], {"type": "array", "items": _VALUE}]}


class Schemas:
    """Schemas by the names of their classes, each written once."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """The schema of a type; a class is referred to."""
        if kind == Value:
            return _VALUE
        if kind == Key:
            return _KEY
        if kind in _SCALARS:
            return _SCALARS[kind]
        if is_dataclass(kind) or is_typeddict(kind):
            return self._named(kind)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return {**self.of(arguments[0]), "description": arguments[1]}
        if origin in (Union, types.UnionType):
            return {"anyOf": [self.of(member) for member in arguments]}
        if origin is Literal:
            return {"type": "string", "enum": list(arguments)}
        if origin in (tuple, list):
            return self._array(origin, arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"type": "string", "enum": [member.value for member in kind]}
        raise TypeError(f"no schema for {kind!r}")

    def _array(self, origin: Any, arguments: tuple[Any, ...]) -> Schema:
        if origin is list or (len(arguments) == 2 and arguments[1] is Ellipsis):
            return {"type": "array", "items": self.of(arguments[0])}
        each = [self.of(one) for one in arguments]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}

    def _named(self, kind: Any) -> Schema:
        written = is_dataclass(kind) and _is_written(kind)
        name = f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}" if written else kind.__name__
        if name not in self.named:
            self.named[name] = {}  # types are recursive
            make = self._typed_dict if is_typeddict(kind) else self._form if written else self._fields
            self.named[name] = {"type": "object", "description": _said(kind), **make(kind)}
        return {"$ref": f"#/components/schemas/{name}"}

    def _typed_dict(self, kind: Any) -> Schema:
        hints = get_type_hints(kind)
        return {
            "required": sorted(hints),
            "properties": {name: self.of(hint) for name, hint in hints.items()},
        }

    def _fields(self, kind: Any) -> Schema:
        hints = get_type_hints(kind, include_extras=True)
        required = [each.name for each in fields(kind) if each.default is MISSING]
        properties = {each.name: self.of(hints[each.name]) for each in fields(kind)}
        return {"required": required, "additionalProperties": False, "properties": properties}

    def _form(self, kind: Any) -> Schema:
        form, hints = form_of(kind), get_type_hints(kind)
        properties = {name: self.of(hints[own]) for name, own in form.names}
        tag = {"op": {"type": "string", "enum": [form.op]}}
        return {
            "required": sorted(form.required),
            "additionalProperties": False,
            "properties": {**properties, **tag},
        }


def _is_written(kind: Any) -> bool:
    op = next((field.default for field in fields(kind) if field.name == "op"), vars(kind).get("op"))
    return isinstance(op, str) and op in FORMS


def _said(kind: Any) -> str:
    return (getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
