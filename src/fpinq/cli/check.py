"""fpinq check: the theorem over an exhaustive scope, its mutants, and the stability search."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from fpinq.cli.options import number
from fpinq.cli.progress import Progress

SHARDS = 24


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `fpinq check`."""
    parser.add_argument("--scope", choices=("default", "large"), default="default", help="how much to check")
    parser.add_argument(
        "--mutants", action="store_true", help="check wrong rules instead: each must be refuted"
    )
    parser.add_argument(
        "--stability", action="store_true", help="search every transformation's tight stability"
    )
    parser.add_argument("--jobs", type=number, default=os.cpu_count() or 1, help="how many processes to use")


def run(arguments: Namespace) -> int:
    """0 if everything holds."""
    if arguments.mutants:
        return _mutants(arguments.jobs)
    if arguments.stability:
        return _stability()
    return _theorem(arguments.scope, arguments.jobs)


def _theorem(scope_name: str, jobs: int) -> int:
    from fpinq.checker.interleavings import MEETINGS, check_meeting
    from fpinq.checker.notation import show_violation
    from fpinq.checker.programs import Report, check
    from fpinq.checker.propositions import Findings, check_propositions
    from fpinq.checker.scope import LAPLACE, NOISY, SCOPES

    scopes = SCOPES[scope_name]
    kinds = [(scope.name, scope, None) for scope in scopes]
    kinds += [(f"{NOISY.name}: {name}", NOISY, query) for name, query in LAPLACE.items()]  # type: ignore[misc]
    work: list[Work] = [
        (check, (s, q, shard, SHARDS), name) for name, s, q in kinds for shard in range(SHARDS)
    ]
    work += [(check_meeting, (m, shard, SHARDS), m.name) for m in MEETINGS for shard in range(SHARDS)]
    work.append((check_propositions, (), "propositions"))
    reports = {name: Report() for name in [*(name for name, _, _ in kinds), *(m.name for m in MEETINGS)]}
    findings = Findings()
    with Progress("checking", len(work)) as progress:
        for name, result in _each(work, jobs):
            if isinstance(result, Findings):
                findings = result
            else:
                reports[name].add(result)
            progress.advance(f"{sum(r.programs for r in reports.values()):,} programs")

    total = Report()
    print(f"{'scope':<54}{'programs':>11}{'checks':>14}{'traces':>12}{'refusals':>10}{'tightest':>10}")
    for name, report in reports.items():
        total.add(report)
        print(_row(name, report))
    print(_row("in all", total))
    print(
        f"\nprograms           {total.programs:,}: {total.distinct:,} sequences of actions and their budgets"
        f"\nchecks             {total.checks:,} (program, neighbour pair)"
        f"\ntraces             {total.traces:,}: every answer of every query; infinitely many with real noise"
        f"\nrefusals           {total.refusals:,} times ⊥ on the way"
        f"\nrejected actions   {total.rejected:,}: typed errors before anything changed"
        f"\ntightest ratio     {total.tightest} of what was charged"
        f"\npropositions       {findings.clients:,} adaptive clients on {findings.pairs} pairs, "
        f"{findings.traces:,} explicit traces: deterministic, sum to 1, similar, private; "
        f"{findings.failures} failures"
        f"\nviolations         {len(total.violations)}"
    )
    for violation in total.violations[:3]:
        print(f"\n{show_violation(violation)}")
    return 1 if total.violations or findings.failures or not total.programs or not findings.traces else 0


def _row(name: str, report: Any) -> str:
    counts = f"{report.programs:>11,}{report.checks:>14,}{report.traces:>12,}{report.refusals:>10,}"
    return f"{name:<54}{counts}{report.tightest!s:>10}"


def _mutants(jobs: int) -> int:
    from fpinq.checker.mutants import MUTANTS

    verdicts = {}
    with Progress("mutants", len(MUTANTS)) as progress:
        for name, verdict in _each([(_refute, (i,), m.name) for i, m in enumerate(MUTANTS)], jobs):
            verdicts[name] = verdict
            progress.advance(name)
    survivors = 0
    for mutant in MUTANTS:
        verdict = verdicts[mutant.name]
        if verdict.violation is None:
            survivors += 1
            print(f"✗ {mutant.name}: SURVIVED {verdict.programs:,} programs\n")
        else:
            print(f"✓ {mutant.name}: refuted after {verdict.programs:,} programs\n{verdict.shown}\n")
    print(f"{len(MUTANTS)} mutants, {len(MUTANTS) - survivors} refuted, {survivors} survived")
    return 1 if survivors else 0


def _refute(number: int) -> Any:
    from fpinq.checker.mutants import MUTANTS, refute
    from fpinq.checker.notation import show_violation

    return refute(MUTANTS[number], show_violation)


def _stability() -> int:
    from fpinq.checker.stabilities import findings, pieces

    found = []
    with Progress("searching", pieces()) as progress:
        for finding in findings():
            found.append(finding)
            progress.advance(finding.shown)
    print(f"{'transformation':<62}{'argument':>9}{'declared':>9}{'found':>7}")
    for finding in found:
        shown = finding.shown if len(finding.shown) < 62 else f"{finding.shown[:59]}…"
        unbounded = finding.grows and not isinstance(finding.declared, int)
        reached = f"{finding.found}…" if unbounded else str(finding.found)
        print(f"{shown:<62}{finding.argument + 1:>9}{finding.declared!r:>9}{reached:>7}  {finding.verdict}")
    by_verdict = [sum(f.verdict == verdict for f in found) for verdict in ("tight", "loose", "UNSOUND")]
    print("\n{} tight, {} loose, {} unsound".format(*by_verdict))
    return 1 if any(by_verdict[1:]) or not found else 0


Work = tuple[Callable[..., Any], tuple[Any, ...], str]


def _each(work: list[Work], jobs: int) -> Iterable[tuple[str, Any]]:
    """The results of independent pieces of work, as they come."""
    if jobs <= 1:
        yield from ((name, function(*arguments)) for function, arguments, name in work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        names = {pool.submit(function, *arguments): name for function, arguments, name in work}
        for future in as_completed(names):
            yield names[future], future.result()
