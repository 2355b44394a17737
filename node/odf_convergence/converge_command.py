"""``odf-node converge``: bring datasets and all that they rest on up to date, once, and report what was done."""

import argparse
from typing import Any, Final

from odf_convergence.home_graph import HomeGraph
from odf_convergence.notes import AttemptNotes, read_attempts, write_attempts
from odf_convergence.plan_texts import show_plan
from odf_convergence.planner import ConvergencePlan, Goal, make_plan
from odf_convergence.running import ActionOutcome, ActionRunner
from odf_node.cli.context import CommandContext
from odf_node.cli.parsing import add_dry_run, add_output_format
from odf_node.cli.reports import describe_report, report_to_json
from odf_node.cli.run import report_failure
from odf_node.datasets.naming import select_datasets
from odf_node.wording import count_of
from odf_protocol.errors import OdfError

TOPIC: Final = "make and read datasets"
HELP: Final = "bring datasets up to date with all that they rest on, in order, each once"
EXAMPLES: Final = """\
converge
converge totals --ask
"""

MAX_ROUNDS: Final = 20
"""Plans that are made one after the other: inputs that grow faster than they are read are left then.  # guess"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "datasets", nargs="*", metavar="DATASET", help="names or %% patterns; without any: all of this node's"
    )
    parser.add_argument(
        "--ask",
        action="store_true",
        help="ask their sources, and the nodes whose datasets they rest on, for news first; "
        "else what is here or was announced is enough",
    )
    add_dry_run(parser)
    add_output_format(parser, "text", "json")


async def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Plan and do until nothing is left to do; what failed before is tried again at once."""
    context.limit_transfers()
    node = context.node
    cache, notes, reader = node.home.folder.cache, read_attempts(node.home.folder.cache), HomeGraph(node.home)
    chosen = [str(each.id) for each in select_datasets(node.store, arguments.datasets)]
    forget_failures(notes)
    as_json = arguments.output_format == "json"
    outcomes: list[ActionOutcome] = []
    if not arguments.dry_run:
        node.sweeper.clean_up()
    for number in range(MAX_ROUNDS):
        now_ms = node.clock.now().unix_ms
        graph = notes.mark(reader.read(), now_ms)
        goals = [Goal(key=key, asks=arguments.ask and not number) for key in chosen or graph.order]
        plan = make_plan(graph, goals, now_ms)
        if arguments.dry_run:
            show_plan(context.console, graph, plan, as_json=as_json)
            return 0
        if plan.is_done:
            break
        with context.console.progress("converging") as progress:
            async for outcome in ActionRunner(node, notes, lambda _action: progress).run(graph, plan):
                outcomes.append(outcome)
                if not as_json:
                    _show(context, outcome)
        if node.home.folder.exists():
            write_attempts(cache, notes)
    return _report(context, outcomes, plan, as_json=as_json)


def forget_failures(notes: AttemptNotes) -> None:
    """Let what failed be tried at once, as a person asks for it now."""
    notes.attempts = {key: note for key, note in notes.attempts.items() if not note.text}


def _show(context: CommandContext, outcome: ActionOutcome) -> None:
    if outcome.report is not None:
        for line in describe_report(outcome.report):
            context.console.line(line)


def _report(context: CommandContext, outcomes: list[ActionOutcome], plan: ConvergencePlan, *, as_json: bool) -> int:
    failures: list[int] = []
    for outcome in outcomes:
        if isinstance(outcome.failure, OdfError):
            failures.append(report_failure(f"converge: {outcome.action.name}", outcome.failure))
        elif outcome.failure is not None:
            raise outcome.failure
    if as_json:
        left = [{"dataset": each.name, "id": each.key, "why": each.why} for each in plan.put_off]
        context.console.json({"actions": [_plain(each) for each in outcomes if not each.is_left_out], "putOff": left})
        return failures[0] if failures else 0
    for put_off in plan.put_off:
        context.console.line(f"{put_off.name} is left alone: {put_off.why}")
    done = sum(1 for each in outcomes if each.blocks)
    context.console.text(f"{count_of(done, 'dataset')} changed" if done else "nothing was to be done")
    return failures[0] if failures else 0


def _plain(outcome: ActionOutcome) -> dict[str, Any]:
    return {
        "action": str(outcome.action.kind),
        "dataset": outcome.action.name,
        "newBlocks": outcome.blocks,
        "seconds": round(outcome.seconds, 3),
        "failure": None if outcome.failure is None else str(outcome.failure),
        "report": None if outcome.report is None else report_to_json(outcome.report),
    }
