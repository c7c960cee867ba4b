"""What became of an action, for whoever keeps a record of it: a ledger, or the memory of a process."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from fpinq.model.frozen import dataclass
from fpinq.model.semantics import Label, Rule
from fpinq.model.traces import Released

# Asked of what is about to be measured: raises, and nothing is charged.
Check = Callable[[Label], None]


@dataclass(frozen=True)
class Acted:
    """What became of an action. A Measure is charged for: measure it, then `answer`.

    `released` is there if this request was answered before: then that is the
    answer, and nothing is left to measure. `seq` is the entry; asking for public facts leaves none.
    """

    label: Label
    rule: Rule
    charged: Mapping[str, Fraction]
    seq: int | None = None
    released: tuple[Released, ...] | None = None
