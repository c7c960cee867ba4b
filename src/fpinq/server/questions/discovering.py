"""Keys that nobody listed, in the body of a question: found at a δ, or within a domain."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from fpinq.client.discovery import Discover, discover
from fpinq.ledger import wire
from fpinq.ledger.errors import BadWire
from fpinq.model import epsilon as exact
from fpinq.model.discovery import MAX_FOUND
from fpinq.model.domains import KeyDomain
from fpinq.model.errors import BadEpsilon, BadPartition, suggest
from fpinq.model.notions import Amount, Rho
from fpinq.server.questions.numbers import Number, exactly, number_of

# How many keys a question shows, unless it says so: as many as one reads, and may ask something of.
AT_MOST = 1_000


@dataclass(frozen=True)
class Discovering:
    """How keys are found that nobody listed: at a δ, or within a domain of any size."""

    delta: Annotated[Number | None, 'at this δ, of the δ for keys: "1e-10"'] = None
    within: Annotated[
        KeyDomain | None,
        'which keys there can be: {"op": "strings", "max_bytes": 32}; without a δ it is needed',
    ] = None
    epsilon: Annotated[Number | None, "to find them at, where something else than a count is asked"] = None
    rho: Annotated[Number | None, "the same, of a budget in ρ"] = None
    per_person: Annotated[int | None, "in how many keys a person counts at the most, once in each"] = None
    at_most: Annotated[int | None, f"how many keys are shown at the most: {AT_MOST:,} unless it is said"] = (
        None
    )
    expected: Annotated[
        Number | None,
        "without a δ: how many keys that nobody has are expected to be shown, 1/1000 unless it is said",
    ] = None

    @property
    def how(self) -> Discover:
        """The same as the client says it; a ProgramError if it cannot be."""
        given: dict[str, Any] = {"at_most": self.at_most or AT_MOST}
        if self.expected is not None:
            given["expected"] = exactly(self.expected)
        return discover(
            self._amount(),
            None if self.delta is None else exactly(self.delta, BadEpsilon),
            within=self.within,
            per_person=self.per_person,
            **given,
        )

    def _amount(self) -> Amount | None:
        if self.rho is not None:
            return Rho(exact.rho(exactly(self.rho, BadEpsilon)))
        return None if self.epsilon is None else exact.epsilon(exactly(self.epsilon, BadEpsilon))


def discovering_of(given: Any, name: str) -> Discovering:
    """What a body says of keys that are to be found."""
    known = [field.name for field in fields(Discovering)]
    if type(given) is not dict:
        raise BadWire(f'{name!r} says how keys are found: {{"delta": "1e-10"}}')
    for field in given:
        if field not in known:
            raise BadWire(
                f"{name!r} has no {field[:40]!r}{suggest(field, known)}; there are {', '.join(known)}"
            )
    said = {field: _READ[field](value, field) for field, value in given.items() if value is not None}
    if "epsilon" in said and "rho" in said:
        raise BadWire("say 'epsilon' or 'rho', not both: keys are found at one")
    if "delta" not in said and "within" not in said:
        raise BadPartition(
            'keys that nobody listed are found at a δ, "discover": {"delta": "1e-10"}, or within a domain, '
            '"discover": {"within": {"op": "strings", "max_bytes": 32}}'
        )
    return Discovering(**said)


def _whole(given: Any, name: str) -> int:
    if type(given) is not int or not 1 <= given <= MAX_FOUND:
        raise BadWire(f"{name!r} is a whole number, 1 to {MAX_FOUND:,}")
    return given


def _domain(given: Any, name: str) -> KeyDomain:
    if not isinstance(given, Mapping):
        raise BadWire(f'{name!r} is a domain, such as {{"op": "integers", "low": 0, "high": 999}}')
    found: KeyDomain = wire.from_json(given, KeyDomain)
    return found


_READ: dict[str, Callable[[Any, str], Any]] = {
    "delta": number_of,
    "within": _domain,
    "epsilon": number_of,
    "rho": number_of,
    "per_person": _whole,
    "at_most": _whole,
    "expected": number_of,
}
assert _READ.keys() == {field.name for field in fields(Discovering)}
