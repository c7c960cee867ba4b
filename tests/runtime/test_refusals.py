"""Errors on the wire: what each carries is in the table, by name."""

import pytest

import fpinq as fp
from fpinq.runtime.refusals import FAILURES, OtherVersion, error_of, failure_of, fields_of


def exceeded() -> fp.BudgetExceeded:
    """⊥ as a server tells it of a question: with its numbers, and whose limit it was."""
    found = fp.BudgetExceeded("too much")
    vars(found).update(dataset="a", price="1/2", remaining="1/3", refused_by="cap")
    return found


SAMPLES: list[tuple[fp.FpinqError, dict[str, object]]] = [
    (fp.UnknownTable("t", ()), {"table": "t"}),
    (fp.UnknownColumn("agee", ("age",)), {"column": "agee", "known": ("age",)}),
    (fp.WrongArity("join", 2, 1), {"takes": 2, "given": 1}),
    (fp.UnboundedStability("join", 1), {"argument": 1}),
    (fp.RequestReused("r"), {"request_id": "r"}),
    (fp.SameData("b", "a"), {"name": "b", "known_as": "a"}),
    (fp.RegisteredDifferently("a", "budget", "1"), {"name": "a", "what": "budget"}),
    (fp.Frozen("a"), {"name": "a"}),
    (fp.NotConcentrated("a"), {"name": "a"}),
    (fp.NoDelta("a"), {"name": "a"}),
    (fp.TooManyQueries(3), {"at_most": 3}),
    (fp.SessionTooLarge(3), {"at_most": 3}),
    (fp.OthersSession("s"), {"session": "s"}),
    (fp.LedgerCorrupt(7, "is no entry"), {"seq": 7, "what": "is no entry"}),
    (fp.LedgerRolledBack(7, "is gone"), {"seq": 7, "what": "is gone"}),
    (fp.DataChanged("a"), {"root": "a"}),
    (fp.EngineError("12ab"), {"reference": "12ab"}),
    (OtherVersion.of_client(2, 1), {"client": 2, "server": 1}),
    (fp.OtherFormat(1, 2), {"found": 1, "reads": 2}),
    (fp.BadSQL("no such table", 2, 7), {"line": 2, "column": 7}),
    (exceeded(), {"dataset": "a", "price": "1/2", "remaining": "1/3", "refused_by": "cap"}),
    (fp.BadQuery("why"), {}),
]


@pytest.mark.parametrize(("error", "fields"), SAMPLES, ids=lambda each: type(each).__name__)
def test_an_error_carries_what_its_row_names(error: fp.FpinqError, fields: dict[str, object]) -> None:
    assert fields_of(error) == fields
    failure = failure_of(error)
    assert failure.fields == tuple(fields)
    again = error_of(failure.code, str(error), {name: getattr(error, name) for name in failure.fields})
    assert (type(again), str(again), vars(again)) == (type(error), str(error), fields)


def test_every_row_with_fields_has_a_sample() -> None:
    assert {type(error) for error, fields in SAMPLES if fields} == {
        kind for kind, failure in FAILURES.items() if failure.fields
    }
