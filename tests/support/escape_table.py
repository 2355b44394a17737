"""The table of the escape suite, made from the suite itself.

Run: PYTHONPATH=tests python -m support.escape_table > spec/extensions/sandbox-escapes.md
"""

from collections.abc import Iterator

from support.escapes import PROBES
from support.limit_escapes import ATTEMPTS, FIXED
from support.sql_escapes import FIRST_SERIES, SQL_PROBES, STOPPED_BY_SWITCHES

HEAD = """\
# What was tried to get out of the sandbox

The escape suite, attempt by attempt: what a stranger's query or a compromised engine tries, the layer of
[sandbox.md](sandbox.md) that must stop it, and the control that shows that it is this layer and no accident. Made from
the suite by `python -m support.escape_table`; a test compares the two.

A control *succeeds*: the same attempt, with that layer missing, gets what it wants. Where success would change the
machine or needs rights that no test has, the control *reaches the kernel*, which judges the call itself. A control that
a host does not allow is reported as skipped with the reason, never as passed.
"""

_SERIES = """\
The numbers are those of the first series of {count}, tried against Spark with three of its own switches and nothing
else (`restrictedMode`, `reflect.allowList`, `runSQLOnFiles`): 1 to {stopped} were stopped, the others did what they
wanted. Of that series only its count, how many were stopped, and ten of the others by name were written down; those ten
are here, the rest is made anew. What has no number came later.
"""

_NATIVE = "tests/escape/test_native_escapes.py"
_LIMITS = "tests/escape/test_limit_escapes.py"
_SQL = "tests/escape/test_sql_escapes.py"
_OUTPUTS = "tests/unit/test_engine_outputs.py"
_BOMBS = "tests/integration/engines/test_output_reader.py"

# Output of a compromised engine: what it is, and the test.
OUTPUTS = {
    "symbolic link, second name, folder, pipe, or nothing as a file": "test_anything_but_a_plain_file_is_rejected",
    "link in place of the folder": "test_folder_that_became_a_link_is_rejected",
    "name that leaves the folder": "test_name_that_leaves_the_folder_is_rejected",
    "file larger than the limit": "test_file_that_is_too_large_is_rejected",
    "file that shrinks while it is taken over": "test_file_that_shrinks_while_it_is_taken_over_is_rejected",
    "modes of the file": "test_modes_of_the_engine_are_not_taken_over",
    "bytes that are no Parquet": "test_bytes_that_are_no_parquet_are_rejected",
    "footer of gigabytes": "test_footer_that_costs_gigabytes_is_rejected_before_it_is_parsed",
    "compression that swells without bound": "test_compression_that_swells_without_bound_is_rejected",
    "flood of row groups": "test_flood_of_row_groups_is_rejected",
    "more rows than allowed": "test_too_many_rows_are_rejected",
    "other rows, columns, types, offsets, operations, times": "test_slice_that_breaks_a_rule_is_rejected",
    "answers that contradict the file": "test_dishonest_answer_is_rejected",
    "watermark that goes back": "test_watermark_that_goes_back_is_rejected",
    "dictionary of one long text": "test_dictionary_of_one_long_text_costs_bounded_memory_and_the_next_file_is_read",
    "more and more of one text": "test_values_that_fit_into_memory_one_batch_at_a_time_are_counted_together",
    "list of which only the length is written": "test_list_of_which_only_the_length_is_written_costs_bounded_memory",
    "file that takes for ever": "test_time_to_read_is_bounded",
    "file that kills its reader": "test_reader_that_dies_of_a_file_is_a_failure_and_replaced",
}


def iter_lines() -> Iterator[str]:
    """Yield the lines of the table."""
    yield HEAD
    yield f"## Native code\n\n`{_NATIVE}`\n\n| attempt | layer | control |\n|---|---|---|"
    for probe in PROBES:
        control = "reaches the kernel" if probe.reaches else "succeeds"
        without = "on the host itself" if probe.control == "outside" else f"without {_less(probe.control)}"
        yield f"| {_words(probe.name)} | {probe.layer} | {control} {without} |"
    yield f"\n## Using the machine up\n\n`{_LIMITS}`\n\n| attempt | limit | control |\n|---|---|---|"
    for name, attempt in ATTEMPTS.items():
        control = "succeeds under wider limits"
        if name in FIXED:
            control = "succeeds without the watch"
        if attempt.is_endless:
            control = "none: it never ends by itself"
        yield f"| {_words(name)} | {_limit(attempt.stopped_by)} | {control} |"
    yield f"\n## SQL\n\n`{_SQL}`; every control succeeds without gate, switches and mounts of the sandbox.\n"
    yield _SERIES.format(count=len(FIRST_SERIES), stopped=STOPPED_BY_SWITCHES)
    yield "| no. | attempt | first | behind it |\n|---|---|---|---|"
    for query in sorted(SQL_PROBES, key=lambda each: _number(each.name) or len(SQL_PROBES)):
        first = "gate" if query.complaint else "none: it is text"
        behind = {"session": "a session that serves nobody else"}.get(query.other, query.other)
        yield f"| {_number(query.name) or ''} | {_words(query.name)} | {first} | {behind} |"
    yield f"\n## Output\n\n`{_OUTPUTS}` and `{_BOMBS}`; the control is the honest output, which passes.\n"
    yield "| output | test |\n|---|---|"
    for output, test in OUTPUTS.items():
        yield f"| {output} | `{test}` |"


def _number(name: str) -> int:
    """Return the place in the first series, 0 for none."""
    return FIRST_SERIES.index(name) + 1 if name in FIRST_SERIES else 0


def _words(name: str) -> str:
    return name.replace("_", " ")


def _less(control: str) -> str:
    return {
        "network": "the network namespace",
        "processes": "the process namespace",
        "ipc": "filter and IPC namespace",
        "limits": "kernel limits",
        "mounts": "the bounds of mounts",
        "filter": "the filter",
        "descriptors": "closing them",
        "environment": "clearing it",
    }.get(control, control)


def _limit(stopped_by: str) -> str:
    return {"exit code 153": "file size, by the kernel", "more than": "length of an answer"}.get(
        stopped_by, f"`{stopped_by}`"
    )


if __name__ == "__main__":
    print("\n".join(iter_lines()))
