"""The part of the checker that runs against every mutant, beside tests/model and tests/traces."""

from dataclasses import replace

from fpinq.checker.instances import instances
from fpinq.checker.programs import check
from fpinq.checker.scope import ASKING, BEYOND, BROAD, INTERLEAVED, NULLED, PARALLEL, PEOPLED, SEVERAL
from fpinq.checker.stabilities import searched
from fpinq.model.transformations import Join

SCOPES = (
    PARALLEL,
    BEYOND,
    NULLED,
    PEOPLED,
    SEVERAL,
    replace(ASKING, queries=2),
    replace(BROAD, queries=1),
    replace(INTERLEAVED, constructions=1),
)


def test_the_theorem_holds_in_small_scopes() -> None:
    for scope in SCOPES:
        report = check(scope, None)
        assert report.violations == []
        assert report.tightest == 1
        assert report.programs > 100


def test_stabilities_of_one_table_are_tight() -> None:
    of_one = [(t, schemas) for t, schemas in instances() if len(schemas) == 1]
    some_joins = [(t, schemas) for t, schemas in instances() if isinstance(t, Join)][::29]
    for transformation, schemas in of_one:
        assert {f.verdict for f in searched(transformation, schemas, 4)} == {"tight"}
    for transformation, schemas in some_joins:
        assert {f.verdict for f in searched(transformation, schemas, 3)} == {"tight"}
