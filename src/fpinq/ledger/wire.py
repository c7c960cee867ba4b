"""Actions and observations as canonical JSON, and strictly back.

One codec for the ledger and for HTTP. What things are called is in `forms`, what
they are made of is the dataclasses' own types, so that it cannot drift from them:

- a dataclass is an object with an `op` and its fields, under the names of its
  form; fields with a default may be left out when decoding, and later ones are;
- a tuple is an array, a Fraction the text "1/3", an enum its value;
- a range of integers is {"range": [0, 999]}, with both ends;
- a key is a value of a row, or of several expressions an array of them;
- a value of a row is itself: null, true, 1, 1.5, "a"; a date is
  {"date": "2024-02-29"}, a timestamp {"timestamp": "2024-02-29T12:00:00"}, a
  float that JSON cannot tell {"float": "inf"} (or, to say 1.0 from a language
  that writes it as 1, {"float": "1"}).

Canonical text has sorted keys, no spaces and ASCII only, so equal actions have
equal bytes. Decoding accepts nothing else than what it understands: unknown or
repeated keys, missing fields, wrong types, NaN, endless digits and deep
nesting are BadWire.
"""

import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from fpinq.ledger.errors import BadWire
from fpinq.ledger.forms import form_of
from fpinq.model.actions import Action
from fpinq.model.errors import ProgramError
from fpinq.model.expressions import Value, classes_of
from fpinq.model.keys import Key
from fpinq.model.traces import Observation, Released

T = TypeVar("T")
Decoder = Callable[[Any, int], Any]
Encoder = Callable[[Any, int], Any]

# What client and server say they speak, over HTTP. It grows when one that reads this could not read that.
VERSION = 1
HEADER = "Fpinq-Wire"

# Levels of arrays and objects. An expression of the greatest depth takes 200 of them.
MAX_DEPTH = 300

# Up to here, items are looked at one by one.
FEW = 16
_PLAIN = {id(kind) for kind in (types.NoneType, bool, int, str)}

_FRACTION = re.compile(r"(-?[0-9]{1,1000})(?:/([0-9]{1,1000}))?", re.ASCII)
_DECIMAL = re.compile(r"-?[0-9]{1,40}\.[0-9]{1,40}", re.ASCII)
_FLOAT = re.compile(r"-?(?:inf|[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[+-]?[0-9]{1,3})?)", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?", re.ASCII)


# ── the two directions ───────────────────────────────────────────────────────────────


def encode(value: object) -> str:
    """The canonical text of an action, an observation or any part of them."""
    return canonical(to_json(value))


def decode_action(text: str | bytes) -> Action:
    """The action that a text is; BadWire if it is none."""
    return cast(Action, decode(text, Action))


def decode_observation(text: str | bytes) -> Observation:
    """The observation that a text is; BadWire if it is none."""
    return cast(Observation, decode(text, Observation))


def decode(text: str | bytes, kind: Any) -> Any:
    """What a text is, read as a dataclass or a union of them; BadWire if it is none."""
    return from_json(parse(text), kind)


def from_json(data: object, kind: Any) -> Any:
    """What parsed JSON is, read as a dataclass or a union of them; BadWire if it is none."""
    try:
        return _decoder(kind)(data, 0)
    except BadWire:
        raise
    except ProgramError as error:  # a constructor's own refusal
        raise BadWire(str(error)) from None


def to_json(value: object) -> Any:
    """A value as JSON's own types."""
    return _encode(value, 0)


def canonical(data: object) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII."""
    return "".join(_chunks(data, 0))


def _canonical() -> Callable[[Any, int], Iterable[str]]:
    """What `json` makes of these settings for each text that it writes; here it is made once."""
    settings = json.JSONEncoder(
        sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False
    )
    make = json.encoder.c_make_encoder  # type: ignore[attr-defined]
    if make is None:  # pragma: no cover - a Python without it
        return lambda data, _: settings.iterencode(data)
    text = json.encoder.encode_basestring_ascii
    chunks: Callable[[Any, int], Iterable[str]] = make(
        None, settings.default, text, None, ":", ",", True, False, False
    )
    return chunks


_chunks = _canonical()


def parse(text: str | bytes) -> Any:
    """JSON, strictly: BadWire for repeated keys, NaN, endless digits, deep nesting and what is not text."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return _STRICT.decode(text)
    except UnicodeDecodeError:
        raise BadWire("not JSON: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadWire(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise BadWire(f"nested too deeply: at most {MAX_DEPTH} levels") from None
    except ValueError:
        raise BadWire("not JSON: a number has too many digits") from None


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadWire("an object has the same key twice")
    return found


def _no_constant(name: str) -> Any:
    raise BadWire(f"{name} is not JSON")


_STRICT = json.JSONDecoder(object_pairs_hook=_no_repetition, parse_constant=_no_constant)


# ── encoding ─────────────────────────────────────────────────────────────────────────


def _encode(value: Any, depth: int) -> Any:
    kind: type = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if depth > MAX_DEPTH:
        raise _too_deep()
    return _encoder(kind)(value, depth)


@cache
def _encoder(kind: type) -> Encoder:
    """How to write a class. Made once for each."""
    if kind in _ENCODERS:
        return _ENCODERS[kind]
    if issubclass(kind, Enum):
        return lambda value, depth: value.value
    if issubclass(kind, Mapping):
        return lambda value, depth: {name: _encode(item, depth + 1) for name, item in value.items()}
    if not is_dataclass(kind):
        raise BadWire(f"{kind.__name__} is not part of an action")
    return _object_encoder(kind)


def _object_encoder(kind: type) -> Encoder:
    form = form_of(kind)

    def encode_object(value: Any, depth: int) -> Any:
        encoded = {name: _encode(getattr(value, own), depth + 1) for name, own in form.names}
        encoded["op"] = form.op
        for name in form.unsaid:
            if encoded[name] == form.unsaid[name]:
                del encoded[name]
        return encoded

    return encode_object


def _encode_tuple(value: tuple[Any, ...], depth: int) -> list[Any]:
    return _encode_many(value, depth) if len(value) > FEW else [_encode(item, depth + 1) for item in value]


def _encode_many(value: tuple[Any, ...], depth: int) -> list[Any]:
    """A long tuple; of plain values, or of tuples of them, without a look at each."""
    kinds = classes_of(value)
    if kinds <= _PLAIN:
        return list(value)
    if kinds == {id(tuple)} and depth < MAX_DEPTH and classes_of(chain.from_iterable(value)) <= _PLAIN:
        return list(map(list, value))
    return [_encode(item, depth + 1) for item in value]


def _fraction_text(value: Fraction) -> str:
    if max(abs(value.numerator), value.denominator).bit_length() > 3300:
        raise BadWire("a fraction has more than 1000 digits")
    return str(value)


def _encode_float(value: float) -> Any:
    if math.isnan(value):
        raise BadWire("NaN is not a value: it is null")
    return value if math.isfinite(value) else {"float": repr(value)}


_AS_THEY_ARE = frozenset({type(None), bool, int, str})
_ENCODERS: dict[type, Encoder] = {
    tuple: _encode_tuple,
    Fraction: lambda value, depth: _fraction_text(value),
    float: lambda value, depth: _encode_float(value),
    range: lambda value, depth: {"range": [value.start, value.stop - 1]},
    datetime: lambda value, depth: {"timestamp": value.isoformat()},
    date: lambda value, depth: {"date": value.isoformat()},
}


# ── decoding ─────────────────────────────────────────────────────────────────────────


@cache
def _decoder(kind: Any) -> Decoder:
    """How to read a type. Made once for each."""
    if kind == Value:
        return _decode_value
    if kind == Key:
        return _decode_key
    if kind in _SCALARS:
        return _SCALARS[kind]
    if is_dataclass(kind):
        return _object_decoder(cast(type, kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union_decoder(arguments)
    if origin is Literal:
        return _literal_decoder(arguments)
    if origin is tuple:
        return _tuple_decoder(arguments)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_decoder(arguments[1])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _literal_decoder(tuple(member.value for member in kind), kind)
    raise TypeError(f"the wire has no form for {kind!r}")


def _object_decoder(kind: type) -> Decoder:
    form = form_of(kind)
    renamed = form.renamed
    decoders: dict[str, Decoder] = {}  # filled when first used: types are recursive

    def decode_object(data: Any, depth: int) -> Any:
        if type(data) is not dict:
            raise _wrong(f"an object ({form.op})", data)
        if depth > MAX_DEPTH:
            raise _too_deep()
        if data.get("op", form.op) != form.op:
            raise BadWire(f"expected op {form.op!r}")
        if len(decoders) < len(form.names):
            hints = get_type_hints(kind)
            decoders.update({name: _decoder(hints[own]) for name, own in form.names})
        given: dict[str, Any] = {}
        for name, item in data.items():
            decode = decoders.get(name)
            if decode is not None:
                given[name] = decode(item, depth + 1)
            elif name != "op":
                raise BadWire(f"{form.op}: unknown key {name[:40]!r}")
        if len(given) < len(decoders) and (missing := form.required - given.keys()):
            raise BadWire(f"{form.op}: missing {min(missing)!r}")
        if renamed:
            given = form.in_python(given)
        return kind(**given)

    return decode_object


def _union_decoder(members: tuple[Any, ...]) -> Decoder:
    """A union: objects by their op, everything else by its JSON type."""
    objects = {form_of(cast(type, member)).op: member for member in members if is_dataclass(member)}
    others = {_json_type(member): member for member in members if not is_dataclass(member)}
    # A range has no op; a mapping could have any key.
    if len(objects) + len(others) != len(members) or (objects and others.get(dict, range) is not range):
        raise TypeError(f"the wire cannot tell {members!r} apart")

    decoders: dict[str, Decoder] = {}  # filled when first used: types are recursive

    def decode_union(data: Any, depth: int) -> Any:
        if type(data) is dict and objects and ("op" in data or dict not in others):
            op = data.get("op")
            if type(op) is str and op in decoders:
                return decoders[op](data, depth)
            if type(op) is not str or op not in objects:
                shown = repr(op[:40]) if isinstance(op, str) else "none"
                raise BadWire(f"op must be one of {', '.join(sorted(objects))}, not {shown}")
            decoders[op] = _decoder(cast(type, objects[op]))
            return decoders[op](data, depth)
        if type(data) not in others:
            raise _wrong(" or ".join(sorted([*objects, *map(_name_of, others)])), data)
        return _decoder(others[type(data)])(data, depth)

    return decode_union


def _json_type(member: Any) -> type:
    if member in (None, type(None)):
        return type(None)
    if member in (bool, int, str, float):
        return cast(type, member)
    if member is Fraction:
        return str
    return list if get_origin(member) is tuple else dict


def _tuple_decoder(arguments: tuple[Any, ...]) -> Decoder:
    if len(arguments) == 2 and arguments[1] is Ellipsis:

        def decode_many(data: Any, depth: int) -> Any:
            if type(data) is not list:
                raise _wrong("an array", data)
            if depth > MAX_DEPTH:
                raise _too_deep()
            if arguments[0] == Released and are_numbers(data):
                return tuple(map(tuple, data))
            if arguments[0] == Key and classes_of(data) <= _PLAIN:
                return tuple(data)
            item = _decoder(arguments[0])
            return tuple([item(one, depth + 1) for one in data])

        return decode_many

    def decode_few(data: Any, depth: int) -> Any:
        if type(data) is not list or len(data) != len(arguments):
            raise _wrong(f"an array of {len(arguments)}", data)
        return tuple([_decoder(a)(one, depth + 1) for a, one in zip(arguments, data, strict=True)])

    return decode_few


def are_numbers(data: list[Any]) -> bool:
    """Whether all that was released are lists of integers: of many parts there are many, all alike."""
    return classes_of(data) == {id(list)} and classes_of(chain.from_iterable(data)) == {id(int)}


def _mapping_decoder(values: Any) -> Decoder:
    def decode_mapping(data: Any, depth: int) -> Any:
        if type(data) is not dict:
            raise _wrong("an object", data)
        return {name: _decoder(values)(item, depth + 1) for name, item in data.items()}

    return decode_mapping


def _literal_decoder(allowed: tuple[Any, ...], make: Callable[[Any], Any] = lambda data: data) -> Decoder:
    def decode_literal(data: Any, depth: int) -> Any:
        if type(data) is not str or data not in allowed:
            raise _wrong(" or ".join(allowed), data)
        return make(data)

    return decode_literal


def _scalar_decoder(kind: type) -> Decoder:
    def decode_scalar(data: Any, depth: int) -> Any:
        if type(data) is not kind:
            raise _wrong(_name_of(kind), data)
        return data

    return decode_scalar


def _decode_fraction(data: Any, depth: int) -> Fraction:
    if type(data) is not str:
        raise _wrong('a fraction as text, such as "1/3"', data)
    if _DECIMAL.fullmatch(data):
        return Fraction(data)
    found = _FRACTION.fullmatch(data)
    if found is None or (found[2] is not None and not int(found[2])):
        raise BadWire('a fraction is text such as "1/3", "2" or "0.1"')
    return Fraction(int(found[1]), int(found[2] or 1))


def _decode_range(data: Any, depth: int) -> range:
    if type(data) is not dict or data.keys() != {"range"}:
        raise _wrong('{"range": [first, last]}', data)
    ends = data["range"]
    if type(ends) is not list or len(ends) != 2 or any(type(end) is not int for end in ends):
        raise BadWire("a range has a first and a last integer")
    return range(ends[0], ends[1] + 1)


def _decode_value(data: Any, depth: int) -> Value:
    if data is None or type(data) in (bool, int, str):
        return cast(Value, data)
    if type(data) is float:
        if not math.isfinite(data):
            raise BadWire('a number is too large for a float; infinity is {"float": "inf"}')
        return data
    if type(data) is dict and len(data) == 1:
        ((tag, text),) = data.items()
        read = _TAGGED.get(tag)
        if read is not None and type(text) is str and read[0].fullmatch(text):
            try:
                return read[1](text)
            except ValueError:
                raise BadWire(f"no such {tag}") from None
    raise _wrong("a value of a row", data)


def _decode_date(data: Any, depth: int) -> date:
    found = _decode_value(data, depth)
    if type(found) is not date:
        raise _wrong('a date, such as {"date": "2024-02-29"}', data)
    return found


def _decode_key(data: Any, depth: int) -> Key:
    if type(data) is not list:
        return _decode_value(data, depth)
    return tuple([_decode_value(value, depth + 1) for value in data])


_TAGGED: dict[str, tuple[re.Pattern[str], Callable[[str], Value]]] = {
    "float": (_FLOAT, float),
    "date": (_DATE, date.fromisoformat),
    "timestamp": (_TIMESTAMP, datetime.fromisoformat),
}

_SCALARS: dict[Any, Decoder] = {
    bool: _scalar_decoder(bool),
    int: _scalar_decoder(int),
    str: _scalar_decoder(str),
    type(None): _scalar_decoder(type(None)),
    Fraction: _decode_fraction,
    range: _decode_range,
    date: _decode_date,
}

_NAMES: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


def _name_of(kind: type) -> str:
    return _NAMES.get(kind, kind.__name__)


def _wrong(expected: str, found: object) -> BadWire:
    return BadWire(f"expected {expected}, found {_name_of(type(found))}")


def _too_deep() -> BadWire:
    return BadWire(f"nested too deeply: at most {MAX_DEPTH} levels")
