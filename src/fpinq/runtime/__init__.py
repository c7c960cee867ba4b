"""The protected system: the kernel's rules over an engine, with noise.

1. ``system``      charge, measure, draw, record, release
   ``record``      where the trace is kept, if not in a ledger
2. ``statistics``  exact integers, measured once
3. ``mechanisms``  from exact integers to what is released
   ``deadline``    how long measuring and drawing may take
   ``contents``    what data is, by what is in it; ``records``  in memory, column by column
   ``registration``  the one way in for data
"""

from fpinq.engines.in_memory import ReferenceEngine
from fpinq.ledger import Answered, Observation, Released
from fpinq.runtime.record import InMemory, Recorder
from fpinq.runtime.system import ProtectedSystem

__all__ = [
    "Answered",
    "InMemory",
    "Observation",
    "ProtectedSystem",
    "Recorder",
    "ReferenceEngine",
    "Released",
]
