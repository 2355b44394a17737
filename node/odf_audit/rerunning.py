"""``odf-node audit rerun``: a recorded run started again on the versions that it had, and what it writes compared.

Source: clauses AUDIT-21 to AUDIT-24 in ``spec/plug-ins/audit.md``.
"""

import argparse
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from odf_audit.comparing import ComparedHome, ComparedWrite, compare_writes
from odf_audit.home_copies import copied_home
from odf_audit.lookups import AuditLookups
from odf_audit.reruns import RerunPlan, RerunPlanner
from odf_audit.texts import without_secrets
from odf_node.adapters.key_files import FOLDER_VARIABLE
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.adapters.rerun_homes import describe_places
from odf_node.cli.console import Console
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import whole_number
from odf_node.cli.run import EXIT_CODES
from odf_node.composition import open_node
from odf_node.configuration import CONFIGURATION_VARIABLE
from odf_node.errors import UsageError
from odf_node.home_folder import HOME_VARIABLE, HomeFolder
from odf_node.wording import count_of
from odf_protocol.errors import OdfError, RejectedError, UnavailableError

_SECONDS: Final = 3_600  # guess: longer than a job that is run by the hour
_END_WAIT_S: Final = 10.0  # guess: a program that is asked to end
_VARIABLES_OF_OBSERVERS: Final = ("ODF_NODE_LINEAGE_", "OPENLINEAGE_")
"""Variables by which others hear of work: what is done again is none."""
_STDOUT, _STDERR = 1, 2
_SHORT: Final = 10  # as lists of records show runs


def configure_rerun(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", help="its identity, or how that begins")
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="behind --: the command line, where it was not recorded whole"
    )
    parser.add_argument("--keep", metavar="FOLDER", help="keep the copy that it wrote to, in a new folder")
    parser.add_argument(
        "--changed-code", action="store_true", help="start the program as it is now, though it was another file"
    )
    parser.add_argument(
        "--seconds",
        type=whole_number(1),
        default=_SECONDS,
        metavar="N",
        help=f"end the program after this time (default: {_SECONDS})",
    )


def rerun(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Start a run again, and say whether it wrote the same.

    Raises:
        UnavailableError: It took too long.
        OdfError: As ``RerunPlanner.plan`` and ``copied_home``; and where the program failed.
    """
    settings, home, console = context.load_settings(), context.node.home, context.console
    as_json = arguments.output_format == "json"
    planner = RerunPlanner(home, AuditLookups(home))
    plan = planner.plan(arguments.run, arguments.words, allows_changed_code=arguments.changed_code)
    keep = None if arguments.keep is None else Path(arguments.keep)
    for notice in plan.notices:
        console.note(f"notice: {notice}")
    with copied_home(home, plan, settings, keep) as copy:
        versions = ", ".join(f"{each.name} {each.number}" for each in plan.datasets if each.is_recorded) or "no dataset"
        console.note(f"starting in {plan.folder}, on {versions}: {' '.join(without_secrets(plan.words)[0])}")
        console.flush()
        environment = _make_environment(plan, home.folder, copy)
        code = _run_program(plan, environment, arguments.seconds, _STDERR if as_json else _STDOUT)
        with closing(open_node(copy.path)) as node:
            rewritten = [*AuditLookups(node.home).list_of_command("write")]
            first = ComparedHome(home.store, home.objects)
            found = compare_writes(first, plan.writes, ComparedHome(node.store, ObjectFolder(copy)), rewritten)
    _show(console, plan, found, code, as_json=as_json)
    if code:
        raise OdfError(f"the program failed when it was started again: exit code {code}")
    return 0 if all(each.is_equal for each in found) else EXIT_CODES[RejectedError]


def _make_environment(plan: RerunPlan, home: HomeFolder, copy: HomeFolder) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != CONFIGURATION_VARIABLE and not name.startswith(_VARIABLES_OF_OBSERVERS)
    }
    # What is signed here is no mark of what the keys of the home signed last.
    places = {HOME_VARIABLE: str(copy.path), FOLDER_VARIABLE: ""}
    return kept | places | describe_places(plan.run, home.path, copy.path)


def _run_program(plan: RerunPlan, environment: Mapping[str, str], limit_s: int, output: int) -> int:
    """Run the program to its end, in a group of its own, so that nothing of it is left."""
    try:
        process = subprocess.Popen(
            plan.words,
            cwd=plan.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"the program cannot be started: {plan.words[0]}: {error}") from error
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"the program was ended after {count_of(limit_s, 'second')}; --seconds N gives it more"
        ) from error
    finally:
        _end_group(process)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_WAIT_S)


def _show(console: Console, plan: RerunPlan, found: Sequence[ComparedWrite], code: int, *, as_json: bool) -> None:
    is_equal = code == 0 and all(each.is_equal for each in found)
    if as_json:
        console.json(
            {
                "run": plan.run,
                "equal": is_equal,
                "exitCode": code,
                "notices": [*plan.notices],
                "versions": {each.name: each.number for each in plan.datasets if each.is_recorded},
                "writes": [_describe(each) for each in found],
            }
        )
        return
    for each in found:
        first, again = each.versions
        rows = f"{count_of(each.rows[0], 'row')}, {each.rows[1]:,} again"
        verdict = "equal" if each.is_equal else each.problem or f"{each.different:,} of them differ"
        number = f"version {first}" if first is not None else f"version {again} of the second run"
        console.line(f"{each.dataset}, {number}: {rows}: {verdict}")
        for place, one, other in each.shown:
            console.line(f"  row {place} was {one if one is not None else 'not there'}")
            console.line(f"  row {place} is  {other if other is not None else 'not there'}")
    run = plan.run[:_SHORT]
    if not found:
        console.line(f"run {run} wrote nothing, nor did it now: what it printed is above")
    elif not code:
        console.line(f"run {run} {'wrote the same again' if is_equal else 'wrote something else now'}")


def _describe(each: ComparedWrite) -> dict[str, object]:
    return {
        "dataset": each.dataset,
        "version": each.versions[0],
        "versionAgain": each.versions[1],
        "equal": each.is_equal,
        "rows": each.rows[0],
        "rowsAgain": each.rows[1],
        "different": each.different,
        "problem": each.problem or None,
        "shown": [{"row": place, "first": one, "again": other} for place, one, other in each.shown],
    }
