"""Every type that a frame can have, in every layout: read as it is defined, or refused.

The lists are checked against what pyarrow, polars, pandas and NumPy have, so that a type nobody thought of
is noticed here when it arrives.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.api.extensions import ExtensionDtype

from fpinq.engines import frames
from fpinq.engines.duckdb import DuckDB
from fpinq.engines.spark import memory
from fpinq.model.errors import BadData
from fpinq.model.expressions import Type
from fpinq.model.plans import RootTable
from fpinq.runtime import ReferenceEngine

INTEGERS = [3, 0, None, 1, 2, 1, 3]
TEXTS = ["b", "a", None, "", "a\0b", "é", "b"]
BYTES = [b"b", b"a", None, b"", b"\xff", b"a", b"b"]
FLOATS = [1.5, -0.0, None, float("nan"), float("inf"), 0.1, 1.5]
MOMENTS = [7, -1, None, 1_730_613_600, -(10**11), 999, 7]  # in the unit; one in an hour that comes twice
LISTS = [[1, 2], [1, 2], None, [3, 4], [1, 2], [3, 4], [1, 2]]
STRUCTS = [{"a": 1}, {"a": None}, None, {"a": 2}, {"a": 1}, {"a": 2}, {"a": 1}]
MONTHS = [None if i == 2 else pa.MonthDayNano([1, i, 0]) for i in range(7)]
ZONES = [None, "UTC", "America/New_York", "+05:30"]


def decimals(type_: Any) -> list[Any]:
    """Numbers of all its digits, those that engines divide wrongly among them."""
    digits = [
        "7",
        "-9908546341498378",
        None,
        "123456789012345678901",
        "-1",
        "99999999999999999999999999",
        "7",
    ]
    cut = [None if text is None else text[: type_.precision] for text in digits]
    return [None if text is None else Decimal(text).scaleb(-type_.scale) for text in cut]


ARROW: dict[str, list[tuple[Any, list[Any]]]] = {
    "NA": [(pa.null(), [None] * 7)],
    "BOOL": [(pa.bool_(), [True, False, None, True, False, False, True])],
    **{
        f"{sign}INT{bits}": [(getattr(pa, f"{sign.lower()}int{bits}")(), INTEGERS)]
        for sign in ("", "U")
        for bits in (8, 16, 32)
    },
    "INT64": [(pa.int64(), [2**63 - 1, -(2**63), None, 2**53 + 1, 0, 1, 2])],
    "UINT64": [(pa.uint64(), [2**64 - 1, 2**63, None, 2**63 - 1, 0, 1, 2])],
    "HALF_FLOAT": [(pa.float16(), [None if x is None else np.float16(x) for x in FLOATS])],
    "FLOAT": [(pa.float32(), FLOATS)],
    "DOUBLE": [(pa.float64(), FLOATS)],
    "STRING": [(pa.string(), TEXTS)],
    "LARGE_STRING": [(pa.large_string(), TEXTS)],
    "STRING_VIEW": [(pa.string_view(), TEXTS)],
    "BINARY": [(pa.binary(), BYTES)],
    "LARGE_BINARY": [(pa.large_binary(), BYTES)],
    "BINARY_VIEW": [(pa.binary_view(), BYTES)],
    "FIXED_SIZE_BINARY": [(pa.binary(2), [b"bb", b"aa", None, b"\0\0", b"\xff\xff", b"aa", b"bb"])],
    **{
        f"DECIMAL{bits}": [
            (t, decimals(t))
            for t in (make(most, 0), make(most, most // 2), make(most, most), make(4, 2), make(3, -2))
        ]
        for bits, most, make in (
            (32, 9, pa.decimal32),
            (64, 18, pa.decimal64),
            (128, 38, pa.decimal128),
            (256, 76, pa.decimal256),
        )
    },
    "DATE32": [(pa.date32(), [0, -1, None, 10**7, -(10**6), 2_932_896, 0])],
    "DATE64": [(pa.date64(), [0, -1, None, 86_399_999, -86_400_001, 2**62, 0])],
    "TIMESTAMP": [(pa.timestamp(unit, z), MOMENTS) for unit in ("s", "ms", "us", "ns") for z in ZONES],
    "DURATION": [(pa.duration(unit), INTEGERS) for unit in ("s", "ms", "us", "ns")],
    "TIME32": [(pa.time32("s"), INTEGERS), (pa.time32("ms"), INTEGERS)],
    "TIME64": [(pa.time64("us"), INTEGERS), (pa.time64("ns"), INTEGERS)],
    "INTERVAL_MONTH_DAY_NANO": [(pa.month_day_nano_interval(), MONTHS)],
    "LIST": [(pa.list_(pa.int8()), LISTS)],
    "LARGE_LIST": [(pa.large_list(pa.int8()), LISTS)],
    "FIXED_SIZE_LIST": [(pa.list_(pa.int8(), 2), LISTS)],
    "LIST_VIEW": [(pa.list_view(pa.int8()), LISTS)],
    "LARGE_LIST_VIEW": [(pa.large_list_view(pa.int8()), LISTS)],
    "STRUCT": [(pa.struct([("a", pa.int8())]), STRUCTS)],
    "MAP": [
        (
            pa.map_(pa.string(), pa.int8()),
            [None if x is None else [("a", x)] for x in (1, 2, None, 3, 1, 2, 1)],
        )
    ],
}
# Layouts of the others, and two that pyarrow cannot make.
LAYOUTS = {"DICTIONARY", "RUN_END_ENCODED", "EXTENSION"}
UNIONS = {"DENSE_UNION", "SPARSE_UNION"}
UNMADE = {"INTERVAL_MONTHS", "INTERVAL_DAY_TIME"}


def sliced(array: Any) -> Any:
    return pa.concat_arrays([array, array]).slice(len(array))


def chunked(array: Any) -> Any:
    return pa.chunked_array([array.slice(0, 1), array.slice(1, 0), array.slice(1, 2), array.slice(3)])


def codes(array: Any) -> Any:
    return array.dictionary_encode()


def codes_in_chunks(array: Any) -> Any:
    """Each chunk with codes of its own."""
    return pa.chunked_array([array.slice(0, 2).dictionary_encode(), array.slice(2).dictionary_encode()])


def codes_twice(array: Any) -> Any:
    """Each value under two codes, nulls among the codes and among the values."""
    size = len(array)
    absent = array.is_null().to_pylist()
    indices = [None if absent[i] and i % 2 else i + size * (i % 2) for i in range(size)]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.concat_arrays([array, array]))


def runs(array: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(array) + 1), pa.int32()), array)


def runs_of_codes(array: Any) -> Any:
    return runs(array.dictionary_encode())


def of_somebodys_own(array: Any) -> Any:
    """A type that calls itself an integer."""
    return pa.ExtensionArray.from_storage(_Own(array.type), array)


class _Own(pa.ExtensionType):
    def __init__(self, storage: Any) -> None:
        super().__init__(storage, "fpinq.tests.own")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> "_Own":
        return cls(storage)

    def __str__(self) -> str:
        return "int64"


def as_it_is(array: Any) -> Any:
    return array


MADE: list[Callable[[Any], Any]] = [
    as_it_is,
    sliced,
    chunked,
    codes,
    codes_in_chunks,
    codes_twice,
    runs,
    runs_of_codes,
    of_somebodys_own,
]


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[ReferenceEngine, DuckDB]]:
    both = ReferenceEngine(), DuckDB()
    yield both
    both[1].close()


_roots = count()


def read(engine: Any, frame: Any) -> tuple[str, dict[int, str]] | None:
    """The schema and the record of each id, or that it was refused: by nothing but BadData."""
    name = f"root {next(_roots)}"
    try:
        schema = engine.add_root(name, frame)
    except BadData:
        return None
    rows = engine.rows(RootTable(name)).rows
    engine.forget(name)
    return str(schema), {row[0]: repr(row[1:]) for row in rows}


def check(engines: tuple[ReferenceEngine, DuckDB], make: Callable[[list[int]], Any], size: int = 7) -> bool:
    """Whether a frame of such records is read; then as by the reference, and each record for itself."""
    everybody = list(range(size))
    for gone in (0, size - 2):  # the first value that there is, and one in the middle
        others = [i for i in everybody if i != gone]
        plain, found = (read(engine, make(everybody)) for engine in engines)
        plain_less, found_less = (read(engine, make(others)) for engine in engines)
        for whole, less in ((plain, plain_less), (found, found_less)):
            assert (whole is None) == (less is None), "one record decides whether the others are read"
            if whole is not None and less is not None:
                assert whole[0] == less[0], "one record decides a type"
                assert {i: whole[1][i] for i in others} == less[1], "one record changes others"
        assert found is None or found == plain, "read otherwise than it is defined"
    return found is not None


def values_of(type_: Any, values: list[Any], made: Callable[[Any], Any], keep: list[int]) -> Any:
    return pa.table({"id": pa.array(keep, pa.int64()), "x": made(pa.array([values[i] for i in keep], type_))})


def test_every_type_of_arrow_is_among_those_tried() -> None:
    there = {name.removeprefix("Type_") for name in dir(pa.lib) if name.startswith("Type_")}
    assert there - LAYOUTS - UNIONS - UNMADE == set(ARROW) & there
    assert len(ARROW) > 30


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.__name__)
@pytest.mark.parametrize("kind", sorted(ARROW))
def test_a_column_of_arrow_is_read_as_it_is_defined_or_refused(
    engines: tuple[ReferenceEngine, DuckDB], kind: str, made: Callable[[Any], Any]
) -> None:
    for type_, values in ARROW[kind]:
        try:
            values_of(type_, values, made, [0, 1, 2, 3, 4, 5, 6])
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # no such layout of it
            continue
        was_read = check(engines, lambda keep, t=type_, v=values: values_of(t, v, made, keep))
        assert not (was_read and made in (runs, runs_of_codes, of_somebodys_own))

        def of_pandas(keep: list[int], t: Any = type_, v: Any = values) -> Any:
            return values_of(t, v, made, keep).to_pandas(types_mapper=pd.ArrowDtype)

        assert check(engines, of_pandas) <= was_read


@pytest.mark.parametrize("mode", ["dense", "sparse"])
def test_a_union_of_arrow_is_refused(engines: tuple[ReferenceEngine, DuckDB], mode: str) -> None:
    def make(keep: list[int]) -> Any:
        size = len(keep)
        numbers, tags = pa.array(keep, pa.int64()), pa.array([0] * size, pa.int8())
        union = (
            pa.UnionArray.from_sparse(tags, [numbers])
            if mode == "sparse"
            else pa.UnionArray.from_dense(tags, pa.array(range(size), pa.int32()), [numbers])
        )
        return pa.table({"id": numbers, "x": union})

    assert not check(engines, make)


POLARS: dict[str, list[tuple[Any, list[Any]]]] = {
    **{f"{sign}Int{bits}": [] for sign in ("", "U") for bits in (8, 16, 32, 64, 128)},
    "Float16": [],
    "Float32": [(pl.Float32, FLOATS)],
    "Float64": [(pl.Float64, FLOATS)],
    "Boolean": [(pl.Boolean, [True, False, None, True, False, False, True])],
    "String": [(pl.String, TEXTS)],
    "Binary": [(pl.Binary, BYTES)],
    "Categorical": [(pl.Categorical, TEXTS)],
    "Enum": [(pl.Enum(["é", "a", "", "b", "a\0b", "nobody's"]), TEXTS)],
    "Decimal": [(pl.Decimal(p, s), decimals(pa.decimal128(p, s))) for p, s in ((38, 0), (38, 19), (4, 2))],
    "Date": [(pl.Date, [0, -1, None, 10**7, -(10**6), 2_932_896, 0])],
    "Datetime": [(pl.Datetime(u, z), MOMENTS) for u in ("ms", "us", "ns") for z in ZONES[:3]],  # type: ignore[arg-type]
    "Duration": [(pl.Duration("us"), INTEGERS)],
    "Time": [(pl.Time, INTEGERS)],
    "Null": [(pl.Null, [None] * 7)],
    "List": [(pl.List(pl.Int8), LISTS)],
    "Array": [(pl.Array(pl.Int8, 2), LISTS)],
    "Struct": [(pl.Struct({"a": pl.Int8}), STRUCTS)],
    "Map": [],
    "Extension": [],
}
for _name in ("Float16", *(name for name in POLARS if "Int" in name)):
    if hasattr(pl, _name):
        POLARS[_name] = [(getattr(pl, _name), FLOATS if _name == "Float16" else INTEGERS)]
# What others are made of; objects state no type.
ABSTRACT = {"BaseExtension", "FloatType", "IntegerType", "NestedType", "NumericType", "ObjectType", "Unknown"}
ABSTRACT |= {"SignedIntegerType", "UnsignedIntegerType", "TemporalType", "Object"}


def below(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from below(one)


def test_every_type_of_polars_is_among_those_tried() -> None:
    there = {one.__name__ for one in below(pl.DataType) if one.__module__.startswith("polars.")}
    assert there - ABSTRACT - set(POLARS) == set()


@pytest.mark.parametrize("kind", sorted(POLARS))
def test_a_column_of_polars_is_read_as_it_is_defined_or_refused(
    engines: tuple[ReferenceEngine, DuckDB], kind: str
) -> None:
    for type_, values in POLARS[kind]:

        def make(keep: list[int], t: Any = type_, v: Any = values) -> Any:
            physical = (
                pl.Int32 if t == pl.Date else pl.Int64 if kind in ("Datetime", "Duration", "Time") else t
            )
            x = pl.Series("x", [v[i] for i in keep], dtype=physical).cast(t)
            return pl.DataFrame({"id": pl.Series(keep, dtype=pl.Int64), "x": x})

        was_read = check(engines, make)
        assert check(engines, lambda keep, make=make: make(keep).lazy()) == was_read
        assert check(engines, lambda keep, make=make: pl.concat([make(keep[:3]), make(keep[3:])])) == was_read


@pytest.mark.parametrize("storage", [pa.int8(), pa.string(), pa.binary(16)], ids=str)
def test_extension_types_are_refused_of_polars_too(
    engines: tuple[ReferenceEngine, DuckDB], storage: Any
) -> None:
    """DuckDB reads what they store, which is not what they mean."""
    kinds = {"int8": pa.bool8(), "string": pa.json_(), "fixed_size_binary[16]": pa.uuid()}
    values = [None if v is None else b"%16d" % v if storage == pa.binary(16) else v for v in (0, 1, None, 2)]
    values = ["1" if storage == pa.string() and v is not None else v for v in values]

    def make(keep: list[int]) -> Any:
        stored = pa.array([values[i] for i in keep], storage)
        x = pa.ExtensionArray.from_storage(kinds[str(storage)], stored)
        return pl.from_arrow(pa.table({"id": pa.array(keep, pa.int64()), "x": x}))

    if "ext" in str(make([0, 1, 2, 3]).schema["x"]).lower():  # versions of polars that have them
        assert not check(engines, make, 4)


PANDAS: dict[str, list[Any]] = {
    "BooleanDtype": [pd.Series([True, False, None, True, False, False, True], dtype="boolean")],
    "CategoricalDtype": [
        pd.Series(TEXTS).astype(
            pd.CategoricalDtype(pd.Index(["é", "a", "", "b", "a\0b", "nobody's"], dtype="string"))
        ),
        pd.Series(INTEGERS, dtype="Int64").astype(pd.CategoricalDtype([3, 2, 1, 0, 9])),
    ],
    "DatetimeTZDtype": [
        pd.Series(np.array(MOMENTS, "datetime64[s]"))
        .dt.tz_localize("UTC")
        .dt.tz_convert(zone)
        .dt.as_unit(unit)
        for zone in ("UTC", "America/New_York")
        for unit in ("s", "us")
    ],
    **{
        f"{sign}Int{bits}Dtype": [pd.Series(INTEGERS, dtype=f"{sign}Int{bits}")]
        for sign in ("", "U")
        for bits in (8, 16, 32, 64)
    },
    "Float32Dtype": [pd.Series(FLOATS, dtype="Float32")],
    "Float64Dtype": [pd.Series(FLOATS, dtype="Float64")],
    "IntervalDtype": [pd.Series(pd.interval_range(0, 7))],
    "PeriodDtype": [pd.Series(pd.period_range("2020", periods=7, freq="M"))],
    "SparseDtype": [pd.Series([0, 1, 0, 0, 0, 2, 0], dtype="Sparse[int64]")],
    "StringDtype": [pd.Series(TEXTS, dtype="string")],
    "ArrowDtype": [],  # above, with Arrow's
    "NumpyEADtype": [],  # inside pandas
}
MADE_OF = {"FloatingDtype", "IntegerDtype", "NumericDtype", "StorageExtensionDtype", "BaseMaskedDtype"}
MADE_OF |= {"PandasExtensionDtype"}


def test_every_type_of_pandas_is_among_those_tried() -> None:
    there = {one.__name__ for one in below(ExtensionDtype) if one.__module__.startswith("pandas")}
    assert there - MADE_OF - set(PANDAS) == set()


def rows_of(column: Any) -> Callable[[list[int]], Any]:
    return lambda keep: pd.DataFrame({"id": pd.Series(range(len(column)), dtype="int64"), "x": column}).iloc[
        keep
    ]


@pytest.mark.parametrize("kind", sorted(PANDAS))
def test_a_column_of_pandas_is_read_as_it_is_defined_or_refused(
    engines: tuple[ReferenceEngine, DuckDB], kind: str
) -> None:
    for column in PANDAS[kind]:
        check(engines, rows_of(column))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", sorted(set(np.typecodes["All"]) - {"O", "V"}))
def test_a_column_of_numpy_is_read_as_it_is_defined_or_refused(
    engines: tuple[ReferenceEngine, DuckDB], code: str, order: str
) -> None:
    values = np.array([1, 0, 0, 1, 1, 0, 1] if code == "?" else [7, 1, 0, 100, 3, 5, 7])
    for unit in ("8[s]", "8[ms]", "8[us]", "8[ns]") if code in "Mm" else ("",):

        def make(keep: list[int], unit: str = unit) -> Any:
            column = pd.Series(values[keep].astype(f"{order}{code}{unit}"))
            return pd.DataFrame({"id": np.array(keep, "int64"), "x": column})

        if make([0])["x"].dtype != object:
            check(engines, make)


class _OwnDtype(ExtensionDtype):
    """Somebody's own type, which calls itself an integer."""

    name = "int64"
    type = int


def test_a_type_of_somebodys_own_is_not_what_it_calls_itself() -> None:
    assert frames._defined(frames._words(_OwnDtype())) is None
    assert frames._defined(frames._words(_Own(pa.int64()))) is None


def test_decimals_are_the_nearest_doubles(engines: tuple[ReferenceEngine, DuckDB]) -> None:
    """DuckDB takes the double beside it for some whole numbers of 128 bits, Arrow for every tenth number."""
    whole = [Decimal(9_908_546_341_498_378 + 2 * i) for i in range(-400, 400)]
    for precision, scale in ((19, 0), (24, 0), (38, 0), (38, 2), (18, 4)):
        values = [sign * number.scaleb(-scale) for number in whole for sign in (1, -1)]
        if precision > 18 and scale == 0:
            values += [sign * 10 ** (precision - 17) * number for number in whole[::9] for sign in (1, -1)]
            values = [value for value in values if len(value.as_tuple().digits) <= precision]
        frame = pa.table({"id": range(len(values)), "x": pa.array(values, pa.decimal128(precision, scale))})
        found = read(engines[1], frame)
        assert found is not None
        assert found[1] == {i: repr((float(value),)) for i, value in enumerate(values)}
        type_, column = memory._plain("x", frame["x"])  # as Spark is given it
        assert (type_, column.to_pylist()) == (Type.FLOAT64, [float(value) for value in values])
