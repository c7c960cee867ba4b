"""The protected system: the kernel's rules over an engine, with noise.

1. ``system``      charge, measure, draw, record, release
2. ``statistics``  exact integers, measured once
3. ``mechanisms``  from exact integers to what is released
   ``in_memory``   the reference engine behind the engines' interface
"""

from fpinq.ledger.observations import Answered, Observation
from fpinq.runtime.in_memory import ReferenceEngine
from fpinq.runtime.mechanisms import Released
from fpinq.runtime.system import InMemory, ProtectedSystem, Record

__all__ = ["Answered", "InMemory", "Observation", "ProtectedSystem", "Record", "ReferenceEngine", "Released"]
