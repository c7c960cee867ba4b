"""Keys that nobody listed, on the command line: --delta, --domain and what goes with them."""

from argparse import Namespace
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from fpinq.model.errors import ProgramError
from fpinq.model.notions import stated

# What says something of keys that are found, beside --delta and --domain.
_WITH = ("keys_epsilon", "keys_rho", "per_person", "keys_at_most")


def is_asked(arguments: Namespace) -> bool:
    """Whether keys are to be found."""
    return arguments.delta is not None or arguments.domain is not None


def check(arguments: Namespace) -> None:
    """ProgramError if something is said of keys that are found, and none are; or they are listed, too."""
    if not is_asked(arguments):
        for option in _WITH:
            if getattr(arguments, option) is not None:
                flag = f"--{option.replace('_', '-')}"
                raise ProgramError(f"{flag} is of keys that are found: say --delta or --domain, too")
        return
    if arguments.by is None:
        raise ProgramError('keys of what? Say --by "x.city" too')
    if arguments.keys is not None:
        raise ProgramError("keys are listed, --keys, or found, --delta or --domain: not both")
    if arguments.domain is not None and len(arguments.domain) != len(set(arguments.by)):
        raise ProgramError("each --by has a --domain of its own, or none has")
    if arguments.keys_epsilon is not None and arguments.keys_rho is not None:
        raise ProgramError("say --keys-epsilon or --keys-rho, not both: keys are found at one")


def found(arguments: Namespace) -> Any:
    """How the keys are found."""
    import fpinq as fp

    at = arguments.keys_epsilon if arguments.keys_rho is None else f"rho {arguments.keys_rho}"
    domains = [_domain(text) for text in arguments.domain or ()]
    within = None if not domains else domains[0] if len(domains) == 1 else fp.domain.product(*domains)
    return fp.discover(
        None if at is None else stated(at),
        arguments.delta,
        within=within,
        per_person=arguments.per_person,
        at_most=arguments.keys_at_most,
    )


def _domain(text: str) -> Any:
    import fpinq as fp

    kind, *given = text.split(":")
    try:
        match kind, given:
            case "strings", [most]:
                return fp.domain.strings(int(most))
            case "integers", [low, high]:
                return fp.domain.integers(int(low), int(high))
            case "dates", [first, last]:
                return fp.domain.dates(first, last)
            case "booleans", []:
                return fp.domain.booleans()
    except ValueError:
        pass
    raise ProgramError(
        f"--domain {text[:40]!r}: say strings:32, integers:0:120, dates:2000-01-01:2030-12-31 or booleans"
    )


def facts(expected: Any, table: Any) -> dict[str, object]:
    """What is known of keys before they are found, and of the δ that it costs."""
    facts: dict[str, object] = {}
    if expected.delta:
        price, left = expected.price_delta, table.remaining_delta
        for root in price if isinstance(price, Mapping) else [None]:
            of = "" if root is None else f" of {root}"
            cost, has = (Fraction(each if root is None else each[root]) for each in (price, left))
            facts |= {f"δ price{of}": cost, f"δ left{of}": has, f"then δ left{of}": has - cost}
            if cost > has:
                facts[f"then δ left{of}"] = "⊥: refused, and nothing charged"
    facts["shown are keys from"] = f"{expected.threshold:,} (noisy)"
    facts["shown with 95 % from"] = f"{expected.sure():,} records"
    if expected.expected_false:
        facts["keys nobody has, at most"] = expected.expected_false
    return facts
