"""Answers as numbers: where a number is expected, an answer is its value."""

from math import ceil, floor, trunc
from typing import Any

from fpinq.client.rows import Symbolic


class AsNumber:
    """What has a value, and is it in comparisons and arithmetic; what comes of that is a plain number."""

    __slots__ = ("value",)
    __array_ufunc__ = None

    value: Any

    def __fpinq_value__(self) -> Any:
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        if type(self.value) is int:
            return self.value
        raise TypeError("this answer is not a whole number: use round(answer)")

    def __index__(self) -> int:
        return int(self)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.value, digits)

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value == _value(other)

    def __lt__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value < _value(other)

    def __le__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value <= _value(other)

    def __gt__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value > _value(other)

    def __ge__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value >= _value(other)

    def __add__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value + _value(other)

    def __radd__(self, other: object) -> Any:
        return _value(other) + self.value

    def __sub__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value - _value(other)

    def __rsub__(self, other: object) -> Any:
        return _value(other) - self.value

    def __mul__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value * _value(other)

    def __rmul__(self, other: object) -> Any:
        return _value(other) * self.value

    def __truediv__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value / _value(other)

    def __rtruediv__(self, other: object) -> Any:
        return _value(other) / self.value

    def __floordiv__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value // _value(other)

    def __rfloordiv__(self, other: object) -> Any:
        return _value(other) // self.value

    def __mod__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value % _value(other)

    def __rmod__(self, other: object) -> Any:
        return _value(other) % self.value

    def __divmod__(self, other: object) -> Any:
        return divmod(self.value, _value(other))

    def __pow__(self, other: object) -> Any:
        return NotImplemented if isinstance(other, Symbolic) else self.value ** _value(other)

    def __rpow__(self, other: object) -> Any:
        return _value(other) ** self.value

    def __trunc__(self) -> Any:
        return trunc(self.value)

    def __floor__(self) -> Any:
        return floor(self.value)

    def __ceil__(self) -> Any:
        return ceil(self.value)

    def __neg__(self) -> Any:
        return -self.value

    def __pos__(self) -> Any:
        return +self.value

    def __abs__(self) -> Any:
        return abs(self.value)


def _value(other: object) -> Any:
    return other.value if isinstance(other, AsNumber) else other
