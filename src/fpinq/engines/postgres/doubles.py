"""Doubles as IEEE 754 has them, in a database that raises where a result is beyond or below them.

PostgreSQL computes with the machine's doubles and then complains: a sum, product
or quotient of finite numbers that is infinite is an error, and so is a product or
a quotient that is 0 where nothing was. So what would be rounded to ∞ or to 0 is
known before, exactly, from exponents and mantissas; everything else PostgreSQL
computes itself, and rounds once.

Arguments are SQL atoms: they are mentioned often. A part that is made of
constants only is computed when the statement is planned, whichever branch it
stands in; so no part raises, whatever its arguments are.
"""

from math import inf, nan

# Between these a product or a quotient of two is a double with all its bits.
_NEAR, _FAR = 2.0**-500, 2.0**500
_LEAST = 5e-324  # the smallest double, 2⁻¹⁰⁷⁴

# eᵃ is finite up to the first, and 0 below the second; below the third it is the smallest double.
_LAST_EXP, _FIRST_EXP, _LEAST_EXP = 709.782712893384, -745.1332191019411, -744.4400719213812

# From here on a decimal is rounded to ∞; up to there to 0.
_BEYOND, _BELOW = 2**1024 - 2**970, 5**1075


def double(number: float) -> str:
    """A double, to the last bit."""
    words = {inf: "Infinity", -inf: "-Infinity"}
    text = "NaN" if number != number else words.get(number, repr(number))
    return f"CAST('{text}' AS double precision)"


def numeric(number: int) -> str:
    """An integer of any size."""
    return f"CAST('{number}' AS numeric)"


_INF, _MINUS_INF, _NAN, _ZERO, _ONE = map(double, (inf, -inf, nan, 0.0, 1.0))


def _is_infinite(a: str) -> str:
    """Whether it is ±∞, or NaN, which PostgreSQL takes for the largest of all."""
    return f"abs({a}) >= {_INF}"


def _all(*tests: str) -> str:
    return " AND ".join(f"({test})" for test in tests)


def _any(*tests: str) -> str:
    return " OR ".join(f"({test})" for test in tests)


def _infinite(negative: str) -> str:
    return f"CASE WHEN {negative} THEN {_MINUS_INF} ELSE {_INF} END"


# ── sums ─────────────────────────────────────────────────────────────────────────────


def add(a: str, b: str, sign: str = "+") -> str:
    """a + b, or a − b."""
    small = _all(*(f"abs({x}) < {double(2.0**1022)}" for x in (a, b)))
    # Half of a small number may be 0, and then PostgreSQL complains; beside a large one it is nothing.
    halves = [f"CASE WHEN abs({x}) < {_ONE} THEN {_ZERO} ELSE {x} * {double(0.5)} END" for x in (a, b)]
    half = f"({halves[0]} {sign} {halves[1]})"
    beyond, infinite = f"abs({half}) >= {double(2.0**1023)}", _infinite(f"{half} < {_ZERO}")
    return (
        f"CASE WHEN {small} THEN {a} {sign} {b} WHEN {half} = {_NAN} THEN {_NAN} "
        f"WHEN {beyond} THEN {infinite} ELSE {a} {sign} {b} END"
    )


# ── products and quotients ───────────────────────────────────────────────────────────


def multiply(a: str, b: str) -> str:
    """a · b.

    It is rounded to ∞ where |a|·2⁻⁵¹² · |b|·2⁻⁵¹² is rounded to 1 or more, and to 0 where |a|·|b| ≤ 2⁻¹⁰⁷⁵;
    where that is rounded to 2⁻¹⁰⁷⁵ itself, the mantissas tell. Both are computed within the doubles: of
    a number that is too large or too small for the question something less so is taken.
    """
    sizes = [f"abs({x})" for x in (a, b)]
    larger = " * ".join(f"{_scaled(f'greatest({x}, {_ONE})', -512)}" for x in sizes)
    least = f"least({', '.join(sizes)}, {double(2.0**-537)})"
    other = f"least(greatest({', '.join(sizes)}), {_ONE})"
    smaller = f"{_scaled(least, 1000)} * {_scaled(other, 200)}"
    exactly = f"{_mantissa(least)} * {_mantissa(other)} > {numeric(2**105)}"
    end = double(2.0**125)
    below = _any(f"{smaller} < {end}", f"{smaller} = {end} AND NOT {exactly}")
    plain = _any(f"{a} = {_ZERO}", f"{b} = {_ZERO}", _is_infinite(a), _is_infinite(b))
    return _unless(f"{larger} >= {_ONE}", below, plain, a, "*", b)


def divide(a: str, b: str) -> str:
    """a / b; b is not 0.

    It is rounded to ∞ where |a|·2⁻⁵¹² ≥ |b|·2⁵¹², and to 0 where |a|·2⁵³⁸ ≤ |b|·2⁻⁵³⁷; again, within the
    doubles.
    """
    large, small = f"greatest(abs({a}), {double(2.0**-60)})", f"least(abs({b}), {_ONE})"
    beyond = f"{_scaled(large, -512)} >= {_scaled(small, 512)}"
    small, large = f"least(abs({a}), {_ONE})", f"greatest(abs({b}), {_ONE})"
    below = f"{_scaled(small, 538)} <= {_scaled(large, -537)}"
    plain = _any(f"{a} = {_ZERO}", _is_infinite(a))
    by_infinity = f"CASE WHEN {_is_infinite(a)} THEN {_NAN} WHEN {a} IS NOT NULL THEN {_ZERO} END"
    return (
        f"CASE WHEN {_is_infinite(b)} THEN {by_infinity} ELSE {_unless(beyond, below, plain, a, '/', b)} END"
    )


def _unless(beyond: str, below: str, plain: str, a: str, operator: str, b: str) -> str:
    """a operator b, unless it is beyond or below the doubles; in the plain cases it cannot be."""
    near = _all(*(f"abs({x}) BETWEEN {double(_NEAR)} AND {double(_FAR)}" for x in (a, b)))
    negative = f"({a} < {_ZERO}) <> ({b} < {_ZERO})"
    return (
        f"CASE WHEN {near} OR {plain} THEN {a} {operator} {b} WHEN {a} IS NULL OR {b} IS NULL THEN NULL "
        f"WHEN {beyond} THEN {_infinite(negative)} WHEN {below} THEN {_ZERO} ELSE {a} {operator} {b} END"
    )


def _scaled(a: str, exponent: int) -> str:
    return f"({a} * {double(2.0**exponent)})"


# ── remainders ───────────────────────────────────────────────────────────────────────


def _bits(a: str) -> str:
    """The bits of |a|, a BIGINT. Subnormals are scaled by 2¹⁰⁰, so that all mantissas have 53 bits."""
    normal = f"CASE WHEN abs({a}) < {double(2.0**-1000)} THEN {_scaled(a, 100)} ELSE {a} END"
    return f"CAST(CAST('x' || encode(float8send(abs({normal})), 'hex') AS bit(64)) AS bigint)"


def _exponent(a: str) -> str:
    """e where |a| = m·2ᵉ⁻⁵²."""
    scaled = f"CASE WHEN abs({a}) < {double(2.0**-1000)} THEN 1123 ELSE 1023 END"
    return f"(({_bits(a)} >> 52) - {scaled})"


def _mantissa(a: str) -> str:
    """m where |a| = m·2ᵉ⁻⁵²: a NUMERIC with 53 bits."""
    return f"CAST({_bits(a)} & {2**52 - 1} | {2**52} AS numeric)"


def remainder(a: str, b: str) -> str:
    """C's fmod: exact, with the sign of a. a is finite and b is not 0.

    With |a| = m·2ᵉ and |b| = n·2ᶠ it is (m·2ᵉ⁻ᶠ mod n)·2ᶠ, and e ≥ f unless a itself is what remains.
    """
    shift = f"power({numeric(2)}, CAST(greatest({_exponent(a)} - {_exponent(b)}, 0) AS numeric))"
    rest = f"CAST(CAST(mod({_mantissa(a)} * {shift}, {_mantissa(b)}) AS bigint) AS double precision)"
    # Never 2ᶠ⁻⁵² by itself: of the smallest numbers that is no double.
    unit = f"power({double(2.0)}, CAST(greatest(least({_exponent(b)}, 1023), -1074) AS double precision))"
    sized = f"CASE WHEN {a} < {_ZERO} THEN -1 ELSE 1 END * {rest} * {double(2.0**-52)} * {unit}"
    return f"CASE WHEN abs({a}) < abs({b}) THEN {a} ELSE {sized} END"


# ── powers ───────────────────────────────────────────────────────────────────────────


def exp(a: str) -> str:
    """eᵃ."""
    return (
        f"CASE WHEN {a} > {double(_LAST_EXP)} THEN {_INF} WHEN {a} < {double(_FIRST_EXP)} THEN {_ZERO} "
        f"WHEN {a} < {double(_LEAST_EXP)} THEN {double(_LEAST)} ELSE exp({a}) END"
    )


def power(a: str, b: str) -> str:
    """C's pow. Where a is 0, b is not negative.

    Its logarithm tells where the result is beyond the doubles or below them, but for a narrow band
    around these ends. There the square root of the result decides, which is well inside.
    """
    # So large an exponent sends all but ±1 to an end, and one so small none.
    bounded = (
        f"CASE WHEN abs({b}) < {double(1e-3)} THEN {_ZERO} WHEN {b} > {double(1e20)} THEN {double(1e20)} "
        f"WHEN {b} < {double(-1e20)} THEN {double(-1e20)} ELSE {b} END"
    )
    size = f"CASE WHEN {a} <> {_ZERO} THEN abs({a}) END"
    log = f"({bounded} * ln({size}))"
    root = f"power(CASE WHEN {log} BETWEEN -746 AND 710 THEN {size} END, ({bounded}) * {double(0.5)})"
    odd = f"CASE WHEN abs({b}) < {double(2.0**53)} THEN CAST(trunc({b}) AS bigint) % 2 <> 0 ELSE FALSE END"
    negative = _all(f"{a} < {_ZERO}", odd)
    plain = _any(f"{a} = {_ZERO}", f"{b} = {_ZERO}", f"abs({a}) = {_ONE}", _is_infinite(a), _is_infinite(b))
    least = f"CASE WHEN {negative} THEN {double(-_LEAST)} ELSE {double(_LEAST)} END"
    beyond = f"{log} > 709.79 OR ({log} > 709.78 AND {root} >= {double(2.0**512)})"
    ends = (
        f"WHEN {beyond} THEN {_infinite(negative)} "
        f"WHEN {log} < -745.14 THEN {_ZERO} "
        f"WHEN {log} < -745.13 THEN CASE WHEN {root} > {double(2.0**-537.5)} THEN {least} ELSE {_ZERO} END "
    )
    no_number = _all(f"{a} < {_ZERO}", f"{a} > {_MINUS_INF}", f"{b} <> floor({b})")
    # PostgreSQL takes −∞ for a number like others that are negative.
    base = f"CASE WHEN {a} = {_MINUS_INF} AND {b} <> floor({b}) THEN {_INF} ELSE {a} END"
    return (
        f"CASE WHEN {no_number} THEN {_NAN} WHEN {b} = {_ONE} THEN {a} WHEN {plain} THEN power({base}, {b}) "
        f"{ends}ELSE power({a}, {b}) END"
    )


# ── decimals ─────────────────────────────────────────────────────────────────────────


def of_decimal(a: str) -> str:
    """The double nearest to a NUMERIC: ±∞ beyond the doubles, 0 below them; NaN of NaN."""
    beyond = f"abs({a}) >= {numeric(_BEYOND)}"
    below = f"abs({a}) <= CAST('{_BELOW}e-1075' AS numeric)"  # 2⁻¹⁰⁷⁵ = 5¹⁰⁷⁵ · 10⁻¹⁰⁷⁵
    return (
        f"CASE WHEN {a} = 'NaN' THEN {_NAN} WHEN {beyond} THEN {_infinite(f'{a} < 0')} "
        f"WHEN {below} THEN {_ZERO} ELSE CAST({a} AS double precision) END"
    )
