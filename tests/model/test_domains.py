"""Domains number their keys in order, all of them and nothing else."""

from datetime import date, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpinq.model.closed import check_closed
from fpinq.model.domains import (
    CHARACTERS,
    MAX_BYTES,
    DateDomain,
    IntegerDomain,
    KeyDomain,
    ProductDomain,
    StringDomain,
    TruthDomain,
    check_domain,
    contains,
)
from fpinq.model.errors import BadAction, BadPartition
from fpinq.model.expressions import INT64_MAX, INT64_MIN, Type

DAYS = DateDomain(date(2024, 2, 27), date(2024, 3, 2))
SMALL = [
    TruthDomain(),
    ProductDomain((TruthDomain(), IntegerDomain(0, 2))),
    IntegerDomain(-3, 4),
    DAYS,
    StringDomain(0),
    StringDomain(1),
    ProductDomain((IntegerDomain(0, 2), DAYS, StringDomain(0))),
    ProductDomain((StringDomain(1), IntegerDomain(7, 7))),
]
LARGE = [
    IntegerDomain(INT64_MIN, INT64_MAX),
    DateDomain(date.min, date.max),
    *map(StringDomain, (2, 3, 4, 5, 8, 32, MAX_BYTES)),
    ProductDomain((StringDomain(32), IntegerDomain(-(10**9), 10**9), DateDomain(date.min, date.max))),
]
STRANGERS = [None, 2.0, b"a", "\ud800", "a\udfffb", (), ("a",), (1, "a", 3), [], datetime(2024, 2, 28)]


@pytest.mark.parametrize("domain", SMALL)
def test_every_number_is_a_key_and_every_key_its_number(domain):
    keys = [domain.unrank(number) for number in range(domain.size)]
    assert [domain.rank(key) for key in keys] == list(range(domain.size))
    assert keys == sorted(set(keys))
    assert all(contains(domain, key) for key in keys)


def test_texts_of_two_bytes_are_all_there():
    """Every byte string of at most two bytes that is UTF-8, in the order of its bytes."""
    listed = []
    for length in range(3):
        for some in product(range(256), repeat=length):
            try:
                listed.append(bytes(some).decode())
            except UnicodeDecodeError:
                continue
    domain = StringDomain(2)
    assert [domain.unrank(number) for number in range(domain.size)] == sorted(listed, key=str.encode)


def test_characters_are_those_of_utf_8():
    """Each of them, counted one by one, is a text of its own at the size of its bytes and not below."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    sizes = [len(character.encode()) for character in characters]
    assert {n: sizes.count(n) for n in range(1, 5)} == CHARACTERS
    for character, size in [*zip(characters, sizes, strict=True)][::97]:
        assert contains(StringDomain(size), character)
        assert not contains(StringDomain(size - 1), character)


@pytest.mark.parametrize("domain", LARGE)
@given(st.data())
def test_rank_and_unrank_are_inverse_and_keep_the_order(domain, data):
    numbers = st.integers(0, domain.size - 1)
    one, other = data.draw(numbers), data.draw(numbers)
    near = min(one + 1, domain.size - 1)
    keys = {number: domain.unrank(number) for number in (one, other, near, 0, domain.size - 1)}
    for number, key in keys.items():
        assert domain.rank(key) == number
        assert contains(domain, key)
        for further, key_of_it in keys.items():
            assert (number < further) == (key < key_of_it)


@given(st.text(max_size=12), st.integers(0, 20))
def test_a_text_is_in_the_domain_if_it_has_so_many_bytes(text, max_bytes):
    """Over hypothesis's texts, which have no surrogates."""
    domain = StringDomain(max_bytes)
    number = domain.rank(text)
    assert (number is not None) == (len(text.encode()) <= max_bytes) == contains(domain, text)
    if number is not None:
        assert domain.unrank(number) == text


@given(st.text(max_size=6), st.text(max_size=6))
def test_texts_are_in_the_order_of_their_bytes(one, other):
    domain = StringDomain(24)
    assert (domain.rank(one) < domain.rank(other)) == (one.encode() < other.encode()) == (one < other)


@pytest.mark.parametrize("domain", [*SMALL, *LARGE])
@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_no_key_has_no_number(domain, stranger):
    assert domain.rank(stranger) is None
    assert not contains(domain, stranger)


def test_what_lies_outside_has_no_number():
    assert IntegerDomain(0, 9).rank(10) is None
    assert IntegerDomain(0, 9).rank(-1) is None
    assert DAYS.rank(DAYS.last + timedelta(1)) is None
    assert StringDomain(2).rank("abc") is None
    assert StringDomain(3).rank("é€") is None
    assert ProductDomain((DAYS, StringDomain(1))).rank((DAYS.first, "ab")) is None


@pytest.mark.parametrize("domain", [*SMALL, *LARGE])
@pytest.mark.parametrize("number", [-1, True, 0.0, None, "0"])
def test_what_is_no_number_has_no_key(domain, number):
    with pytest.raises(BadPartition):
        domain.unrank(number)
    with pytest.raises(BadPartition):
        domain.unrank(domain.size)


@pytest.mark.parametrize("domain", [*SMALL, *LARGE])
def test_a_domain_is_closed_data(domain):
    check_closed(domain, KeyDomain)
    check_domain(domain)


class Lying(StringDomain):
    size = 1


def test_what_only_looks_like_a_domain_is_not_closed_data():
    with pytest.raises(BadAction):
        check_closed(Lying(3), KeyDomain)
    with pytest.raises(BadPartition):
        ProductDomain((Lying(3),))


def test_a_domain_that_was_changed_after_it_was_made_is_refused():
    small = StringDomain(3)
    product_of_it = ProductDomain((small, DAYS))
    object.__setattr__(small, "max_bytes", 10**9)
    for domain in (small, product_of_it):
        with pytest.raises(BadPartition):
            check_domain(domain)


def test_sizes_in_numbers():
    assert StringDomain(0).size == 1
    assert StringDomain(1).size == 129
    assert 10**69 < StringDomain(32).size < 10**70
    assert 10**77 < StringDomain(36).size < 10**79
    assert IntegerDomain(INT64_MIN, INT64_MAX).size == 2**64


def test_the_types_of_keys():
    assert IntegerDomain(0, 1).types == (Type.INT64,)
    assert ProductDomain((StringDomain(3), DAYS)).types == (Type.STRING, Type.DATE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: IntegerDomain(1, 0),
        lambda: IntegerDomain(0, 2**63),
        lambda: IntegerDomain(0.0, 1),
        lambda: IntegerDomain(False, True),
        lambda: IntegerDomain(0, float("inf")),
        lambda: DateDomain(date(2024, 1, 2), date(2024, 1, 1)),
        lambda: DateDomain(datetime(2024, 1, 1), datetime(2024, 1, 2)),
        lambda: DateDomain("2024-01-01", "2024-01-02"),
        lambda: StringDomain(-1),
        lambda: StringDomain(MAX_BYTES + 1),
        lambda: StringDomain(None),
        lambda: ProductDomain(()),
        lambda: ProductDomain((StringDomain(1),) * 31),
        lambda: ProductDomain((StringDomain(MAX_BYTES),) * 2),
        lambda: ProductDomain([StringDomain(1)]),
        lambda: ProductDomain((range(3),)),
        lambda: ProductDomain((ProductDomain((StringDomain(1),)),)),
    ],
)
def test_what_is_no_domain_is_refused(make):
    with pytest.raises(BadPartition):
        make()


def test_truths_are_of_a_column_of_truths():
    assert TruthDomain().types == (Type.BOOL,)
    assert ProductDomain((TruthDomain(), IntegerDomain(0, 2))).types == (Type.BOOL, Type.INT64)


@pytest.mark.parametrize("domain", [IntegerDomain(0, 9), StringDomain(3), DAYS])
@pytest.mark.parametrize("key", [False, True])
def test_a_truth_is_no_key_of_numbers_dates_or_texts(domain, key):
    assert domain.rank(key) is None
