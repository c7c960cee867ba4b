"""Keys of several columns: a product is its keys one by one, both checked as keys of one column are."""

from dataclasses import FrozenInstanceError
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.actions import AskBudget, Partition, Query
from fpinq.model.clamps import Clamp
from fpinq.model.errors import BadAction, BadExpression, BadPartition, ProgramError
from fpinq.model.expressions import Apply, Column, Literal, Schema, Type
from fpinq.model.keys import MAX_PARTS, Listed, Product, has_duplicates, values_of
from fpinq.model.nesting import deepest
from fpinq.model.notation import show_action
from fpinq.model.plans import RootTable, Term
from fpinq.model.queries import Count, Sum
from fpinq.model.semantics import Measure, Told, initial, step
from fpinq.model.transformations import Partitioning, PartOf, check_partitioning, parts_of
from fpinq.model.work import TableSize, work_of

K, F, S = Column("k"), Column("f"), Column("s")
SCHEMA = Schema.of({"k": Type.INT64, "f": Type.FLOAT64, "s": Type.STRING})
ONE = Fraction(1)

INTEGERS: st.SearchStrategy[Any] = st.one_of(
    st.lists(st.sampled_from([None, -1, 0, 1, 2**63 - 1, 2**63, True, "a"]), max_size=3).map(tuple),
    st.builds(lambda first, number: range(first, first + number), st.integers(-2, 2), st.integers(0, 3)),
)
FLOATS = st.lists(st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5, 1]), max_size=3).map(tuple)
TEXTS = st.lists(st.sampled_from([None, "", "a", "\ud800", 1]), max_size=3).map(tuple)


def passes(key: Any, keys: Any) -> bool:
    try:
        check_partitioning(Partitioning(key, keys), SCHEMA)
    except ProgramError:
        return False
    return True


@given(st.tuples(INTEGERS, FLOATS, TEXTS))
def test_a_product_is_its_keys_one_by_one(domains: Any) -> None:
    keys = Product(domains)
    listed = tuple(product(*keys.of))
    assert tuple(keys) == tuple(keys[i] for i in range(len(keys))) == keys[:] == listed
    assert keys[1:3] == listed[1:3]
    assert len(keys) == len(listed)
    assert list(values_of(keys)) == [value for key in listed for value in key]
    with pytest.raises(IndexError):
        _ = keys[len(keys)]
    assert passes((K, F, S), keys) == passes((K, F, S), listed)
    assert has_duplicates(keys) == has_duplicates(listed) or not listed


@given(INTEGERS, st.integers(0, 3))
def test_a_key_of_several_columns_is_checked_as_keys_of_one_are(domain: Any, number: int) -> None:
    assert passes((K, K), Product((domain, (number,)))) == passes(K, domain)
    assert passes((K, K), tuple((key, number) for key in domain)) == passes(K, tuple(domain))


def test_nan_is_null_and_minus_zero_is_zero_in_every_column() -> None:
    nan = float("nan")
    assert Partitioning((F, K), ((nan, 1), (-0.0, 2))).keys == ((None, 1), (0.0, 2))
    assert Product(((-0.0, nan), range(2))).of == ((0.0, None), range(2))
    for keys in (((0.0, 1), (-0.0, 1)), ((nan, 1), (None, 1)), Product(((0.0, -0.0), (1,)))):
        with pytest.raises(BadPartition, match="different"):
            check_partitioning(Partitioning((F, K), keys), SCHEMA)


@pytest.mark.parametrize(
    ("key", "keys", "error", "says"),
    [
        ((K, S), ((1, "a", 2),), BadPartition, "a key of 2 columns has 2 values"),
        ((K, S), ((1,), (2, "a")), BadPartition, "a key of 2 columns has 2 values"),
        ((K, S), (1, "a"), BadPartition, "a key of 2 columns has 2 values"),
        ((K, S), ((1, "a"), 2), BadPartition, "a key of 2 columns has 2 values"),
        ((K, S), range(3), BadPartition, "a key of 2 columns has 2 values"),
        ((K, S), Product(((1,),)), BadPartition, "a key of 2 columns has 2 values"),
        ((K, S), Product(((1,), ())), BadPartition, "needs keys"),
        ((K, S), (), BadPartition, "needs keys"),
        ((K, S), (("a", 1),), BadExpression, "expected int64"),
        ((K, S), Product(((1,), (1,))), BadExpression, "expected string"),
        ((K, K), Product((range(2**63, 2**63 + 1), (1,))), BadExpression, "64 bits"),
        (K, Product(((1,),)), BadPartition, "one expression is a value"),
        (K, ((1,),), BadExpression, "tuple"),
        ((K,), ((1,),), BadPartition, "not a tuple"),
        ((), ((),), BadPartition, "not a tuple"),
        ((K, Apply("split", (S, Literal.of(" ")))), (), BadPartition, "cannot partition"),
    ],
    ids=repr,
)
def test_keys_that_do_not_match_the_columns_are_refused(
    key: Any, keys: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises((error, ProgramError), match=says):
        check_partitioning(Partitioning(key, keys), SCHEMA)


def test_there_are_only_so_many_combinations_and_the_error_says_how_many() -> None:
    Partitioning((K, K), Product((range(2**12), range(2**12))))
    with pytest.raises(BadPartition, match=f"has 4,096 × 4,097 = {4096 * 4097:,}"):
        Partitioning((K, K), Product((range(2**12), range(2**12 + 1))))
    with pytest.raises(BadPartition, match="at most"):
        Partitioning((K, K), Product((range(10**30), range(10**30))))
    assert parts_of(Partitioning((K, K), Product((range(MAX_PARTS), range(1))))) == MAX_PARTS


class Sly(tuple[Any, ...]):
    """A tuple that has another length each time."""

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize("keys", [((1, "a"), Sly((1,))), [(1, "a")], Product], ids=repr)
def test_keys_that_were_put_there_behind_its_back_are_refused(keys: Any) -> None:
    by = Partitioning((K, S), ((1, "a"), (2, "b")))
    object.__setattr__(by, "keys", keys)
    with pytest.raises(BadPartition):
        check_partitioning(by, SCHEMA)


@pytest.mark.parametrize("of", [[(1,), ("a",)], ([1], ("a",)), (range(0, 4, 2), ("a",))], ids=repr)
def test_so_are_the_domains_of_a_product(of: Any) -> None:
    keys = Product(((1,), ("a",)))
    by = Partitioning((K, S), keys)
    object.__setattr__(keys, "of", of)
    with pytest.raises(BadPartition):
        check_partitioning(by, SCHEMA)


def test_the_expressions_of_a_key_are_closed_data() -> None:
    c = initial({"A": (SCHEMA, ONE)})
    by = Partitioning((K, S), ((1, "a"),))
    object.__setattr__(by, "key", (K, "s"))
    with pytest.raises(BadAction, match=r"Partitioning\.key"):
        step(c, Query("A", ONE, (Count(),), by))


def test_parts_of_several_keys_are_charged_as_parts_are() -> None:
    c = initial({"A": (SCHEMA, Fraction(2))})
    by = Partitioning((K, S), Product((range(2), ("a", None))))
    asked = step(c, Query("A", ONE, (Count(),), by))
    assert isinstance(asked.label, Measure)
    assert asked.label.parts_each == 4
    names = tuple("pqrs")
    parted = step(asked.configuration, Partition(names, "A", by)).configuration
    for name in names:
        parted = step(parted, Query(name, ONE, (Count(),))).configuration
    left = step(parted, AskBudget()).label
    assert isinstance(left, Told)
    assert left.fact == {"A": 0}


def test_keys_of_several_columns_are_written_as_records_and_products() -> None:
    listed = Partitioning((K, S), ((1, "a"), (None, None)))
    every = Partitioning((K, S), Product((range(3), ("a", "b"))))
    shown = [show_action(Query("t", ONE, (Count(),), by)) for by in (listed, every)]
    assert shown[0] == "query(t, k, s: ⟨1, 'a'⟩, ⟨null, null⟩, count, 1)"
    assert shown[1] == "query(t, k, s: {0…2} × {'a', 'b'}, count, 1)"


def test_every_column_of_a_key_is_work() -> None:
    sizes = {"A": {"A": TableSize.of(SCHEMA, 10, {"s": 100})}}
    root = RootTable("A")
    one = Partitioning(S, ("a", "b"))
    two = Partitioning((S, K), Product((("a", "b"), range(2))))

    def work(by: Partitioning, *queries: Any) -> int:
        return work_of(root, by, queries, sizes).record

    assert work(two, Count()) > work(one, Count())
    different = [Sum(Clamp(K, 0, i)) for i in range(4)]
    assert work(two, *different) > work(two, *different[:1] * 4)
    parts = [work_of(Term(PartOf(by, 0), (root,)), None, (Count(),), sizes).record for by in (one, two)]
    assert parts[0] < parts[1]


def test_a_key_is_as_deep_as_its_deepest_expression() -> None:
    deep = Apply("negate", (Apply("negate", (K,)),))
    assert deepest(Partitioning((K, deep), ((1, 2),))) == 2


def test_equal_partitionings_have_equal_hashes() -> None:
    days = (date(2024, 1, 1), None)
    made = [Partitioning((K, S), Product((range(3), days))) for _ in range(2)]
    assert made[0] == made[1]
    assert hash(made[0]) == hash(made[1])
    assert made[0] != Partitioning((S, K), Product((range(3), days)))


def test_a_product_never_changes() -> None:
    keys = Product((range(3), ("a",)))
    assert hash(keys) == hash(Product((range(3), ("a",))))
    with pytest.raises(FrozenInstanceError):
        keys.of = ((1,),)  # type: ignore[misc]


@pytest.mark.parametrize(
    "keys",
    [
        Product(((), range(10**30))),
        Product((range(10**30), ())),
        Product((range(10**4000), range(10**4000))),
        range(10**5000),
        Product(((1, 2),) * 31),
    ],
    ids=["nothing of much", "much of nothing", "uncountable", "a long range", "too many columns"],
)
def test_keys_beyond_counting_are_refused(keys: Any) -> None:
    """They were a server's mistake, or failed after the charge."""
    columns = len(keys.of) if isinstance(keys, Product) else 1
    key = (Column("a"),) * columns if columns > 1 else Column("a")
    with pytest.raises(BadPartition, match="at most"):
        check_partitioning(Partitioning(key, keys), Schema.of({"a": Type.INT64}))


def test_a_listed_key_has_thirty_columns_at_the_most() -> None:
    with pytest.raises(BadPartition, match="at most 30 columns"):
        check_partitioning(Partitioning((Column("a"),) * 31, ((1,) * 31,)), Schema.of({"a": Type.INT64}))


def test_listed_keys_are_found_by_their_columns_and_others_are_none_of_them() -> None:
    keys = Listed([("a", 1), ("b", 1), ("a", 2)])
    rows = [("a", 2), ("b", 2), ("c", 1), ("a", 1), ("b", 1)]
    assert list(keys.numbers(list(zip(*rows, strict=True)))) == [2, -1, -1, 0, 1]
    assert len(Listed([("a", 1), ("a", 1)])) == 1
