"""What keys tell: the expressions whose value follows from them."""

from collections.abc import Hashable, Iterable

from fpinq.model.expressions import Apply, Column, Expression


class Told:
    """Keys of a record, or of a join's side, and what follows from them.

    Equal expressions have the same number, found from those of their arguments:
    each is looked at once, however many keys there are.
    """

    def __init__(self, keys: Iterable[Expression], side: str = "") -> None:
        self._numbers: dict[Hashable, int] = {}
        self._side = side
        self._keys: set[int] = set()
        self._keys.update([self._look(key)[0] for key in keys])

    def tell(self, value: Expression) -> bool:
        """Whether all that a value sees of the record, or of the side, are these keys of it."""
        of_the_other = isinstance(value, Column) and not value.name.startswith(self._side)
        return of_the_other or self._look(value)[1]

    def _look(self, value: Expression) -> tuple[int, bool]:
        """The number of an expression, and whether the keys tell it."""
        if isinstance(value, Apply):
            below = [self._look(argument) for argument in value.arguments]
            same: Hashable = (value.operator, *[number for number, _ in below])
            told = all(told for _, told in below)
        else:
            same = value
            told = not (isinstance(value, Column) and value.name.startswith(self._side))
        number = self._numbers.setdefault(same, len(self._numbers))
        return number, told or number in self._keys
