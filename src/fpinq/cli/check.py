"""fpinq check: the theorem over an exhaustive scope, its mutants, and the stability search."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from fpinq.cli.options import number
from fpinq.cli.output import add_forms, draw, is_rich, print_rows, tell
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
    add_forms(parser)


def run(arguments: Namespace) -> int:
    """0 if everything holds."""
    if arguments.mutants:
        return _mutants(arguments)
    if arguments.stability:
        return _stability(arguments)
    return _theorem(arguments)


def _theorem(arguments: Namespace) -> int:
    from fpinq.checker.interleavings import MEETINGS, check_meeting
    from fpinq.checker.notation import show_violation
    from fpinq.checker.programs import Report, check
    from fpinq.checker.propositions import Findings, check_propositions
    from fpinq.checker.scope import LAPLACE, NOISY, SCOPES

    scopes = SCOPES[arguments.scope]
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
        for name, result in _each(work, arguments.jobs):
            if isinstance(result, Findings):
                findings = result
            else:
                reports[name].add(result)
            progress.advance(f"{sum(r.programs for r in reports.values()):,} programs")

    names = ["scope", "programs", "checks", "traces", "refusals", "tightest"]
    if arguments.json or arguments.csv:
        found = [
            [name, r.programs, r.checks, r.traces, r.refusals, str(r.tightest), len(r.violations)]
            for name, r in reports.items()
        ]
        clients = ["propositions", findings.clients, findings.pairs, findings.traces, None, None]
        print_rows(arguments, [*names, "violations"], [*found, [*clients, findings.failures]])
        whole = all(r.programs and not r.violations for r in reports.values())
        return 0 if whole and findings.traces and not findings.failures else 1
    total = Report()
    for report in reports.values():
        total.add(report)
    rows = [_cells(name, report) for name, report in {**reports, "in all": total}.items()]
    _table(names, rows, (54, 11, 14, 12, 10, 10))
    tell(
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
        tell(f"\n{show_violation(violation)}")
    return 1 if total.violations or findings.failures or not total.programs or not findings.traces else 0


def _cells(name: str, report: Any) -> list[str]:
    counts = (report.programs, report.checks, report.traces, report.refusals)
    return [name, *(f"{count:,}" for count in counts), str(report.tightest)]


def _table(names: list[str], rows: list[list[str]], widths: tuple[int, ...]) -> None:
    """For people: the first column to the left, the others to the right."""
    if is_rich():
        draw(names, rows)
        return
    for first, *others in [names, *rows]:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        tell(f"{first:<{widths[0]}}{''.join(cells)}")


def _mutants(arguments: Namespace) -> int:
    from fpinq.checker.mutants import MUTANTS

    verdicts = {}
    with Progress("mutants", len(MUTANTS)) as progress:
        for name, verdict in _each([(_refute, (i,), m.name) for i, m in enumerate(MUTANTS)], arguments.jobs):
            verdicts[name] = verdict
            progress.advance(name)
    if arguments.json or arguments.csv:
        rows = [[m.name, verdicts[m.name].violation is not None, verdicts[m.name].programs] for m in MUTANTS]
        print_rows(arguments, ["mutant", "refuted", "programs"], rows)
        return 0 if all(refuted for _, refuted, _ in rows) else 1
    survivors = 0
    for mutant in MUTANTS:
        verdict = verdicts[mutant.name]
        if verdict.violation is None:
            survivors += 1
            tell(f"✗ {mutant.name}: SURVIVED {verdict.programs:,} programs\n")
        else:
            tell(f"✓ {mutant.name}: refuted after {verdict.programs:,} programs\n{verdict.shown}\n")
    tell(f"{len(MUTANTS)} mutants, {len(MUTANTS) - survivors} refuted, {survivors} survived")
    return 1 if survivors else 0


def _refute(number: int) -> Any:
    from fpinq.checker.mutants import MUTANTS, refute
    from fpinq.checker.notation import show_violation

    return refute(MUTANTS[number], show_violation)


def _stability(arguments: Namespace) -> int:
    from fpinq.checker.stabilities import findings, pieces

    found = []
    with Progress("searching", pieces()) as progress:
        for finding in findings():
            found.append(finding)
            progress.advance(finding.shown)
    if arguments.json or arguments.csv:
        names = ["transformation", "argument", "declared", "found", "verdict"]
        each = [[f.shown, f.argument + 1, repr(f.declared), str(f.found), f.verdict] for f in found]
        print_rows(arguments, names, each)
        return 1 if any(f.verdict != "tight" for f in found) or not found else 0
    rows = []
    for finding in found:
        shown = finding.shown if len(finding.shown) < 62 else f"{finding.shown[:59]}…"
        unbounded = finding.grows and not isinstance(finding.declared, int)
        reached = f"{finding.found}…" if unbounded else str(finding.found)
        rows.append([shown, str(finding.argument + 1), repr(finding.declared), reached, finding.verdict])
    _table(["transformation", "argument", "declared", "found", "verdict"], rows, (62, 9, 9, 7, 9))
    by_verdict = [sum(f.verdict == verdict for f in found) for verdict in ("tight", "loose", "UNSOUND")]
    tell("\n{} tight, {} loose, {} unsound".format(*by_verdict))
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
