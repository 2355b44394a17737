"""Random histories, merged by another implementation and here: the same rows in the same order (ING-8 to ING-11)."""

import asyncio
import json
import os
import random
from pathlib import Path
from typing import Any, Final

import pytest

from support.kamu_workspace import PeerWorkspace
from support.nodes import RealNode

pytestmark = [
    pytest.mark.peer,
    pytest.mark.spark,
    pytest.mark.skipif("ODF_PEER" not in os.environ, reason="ODF_PEER does not name the folder of a peer's programs"),
]

MANIFEST = """kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, ddlSchema: [op INT, event_time TIMESTAMP, k INT, j STRING, x DOUBLE, y STRING]}}
      preprocess: {{kind: Sql, engine: datafusion, query: 'SELECT {columns} FROM input'}}
      merge: {merge}
"""
COLUMNS: Final = ("op", "event_time", "k", "j", "x", "y")
KEY: Final = "primaryKey: [k, j]"
STRATEGIES: Final = {
    "append": "{kind: Append}",
    "ledger": f"{{kind: Ledger, {KEY}}}",
    "snapshot": f"{{kind: Snapshot, {KEY}}}",
    "compared": f"{{kind: Snapshot, {KEY}, compareColumns: [y]}}",
    "changelog": f"{{kind: ChangelogStream, {KEY}}}",
    "upserts": f"{{kind: UpsertStream, {KEY}}}",
}
STREAMS: Final = ("changelog", "upserts")
# Before some event times and behind others, each time another one: of rows that have none it is the place as well.
FALLBACKS: Final = ("2024-01-02T06:00:00Z", "2023-01-01T00:00:00Z", "2024-06-01T00:00:00Z")


def batch_of(name: str, choose: random.Random) -> str:
    """Rows of one file.

    Event times differ, as the peer gives equal ones in any order. Left out is what ING-10 and ING-11 decide otherwise:
    a key twice in a snapshot or changelog, nulls in keys, rows of nulls, zeros of both signs.
    """
    keys = [(k, j) for k in range(12) for j in "ab"]
    chosen = choose.sample(keys, 16) if name in {"snapshot", "compared", "changelog"} else choose.choices(keys, k=16)
    times = choose.sample([f"2024-01-0{day}T0{hour}:00:00.123Z" for day in (1, 2, 3) for hour in range(9)], 16)
    if name in {"snapshot", "compared", "upserts"}:
        times = ["2024-01-01T00:00:00Z" if choose.random() < 0.7 else time for time in times]
    times[3] = ""
    lines = [",".join(COLUMNS)]
    for (k, j), time in zip(chosen, times, strict=True):
        op = choose.choice([0, 0, 1] if name == "upserts" else [0, 1, 2, 3])
        x = choose.choice(["", "1.5", "2.5", "NaN", "-0.0"])
        lines.append(f"{op},{time},{k},{j},{x},{choose.choice('pq')}")
    return "".join(f"{line}\n" for line in lines)


def test_random_histories_of_every_strategy_have_the_same_rows(tmp_path: Path) -> None:
    choose = random.Random(18)
    node = RealNode(tmp_path / "home", has_engine=True)
    histories: dict[str, list[str]] = {}
    for name, merge in STRATEGIES.items():
        columns = ", ".join(COLUMNS if name in STREAMS else COLUMNS[1:])
        (tmp_path / f"{name}.yaml").write_text(MANIFEST.format(name=name, merge=merge, columns=columns))
        histories[name] = []
        for number in range(len(FALLBACKS)):
            path = tmp_path / f"{name}-{number}.csv"
            path.write_text(batch_of(name, choose))
            histories[name].append(str(path))
    node.must("add", *(str(tmp_path / f"{name}.yaml") for name in STRATEGIES))
    theirs = asyncio.run(_ask_peer(tmp_path, histories))
    for name, files in histories.items():
        for path, fallback in zip(files, FALLBACKS, strict=True):
            node.must("ingest", name, path, "--event-time", fallback)
        ours = _rows(node.must("tail", name, "-n", "1000", "-o", "ndjson").out)
        assert len(ours) > len(FALLBACKS), name
        assert ours == theirs[name], name


def test_rows_that_another_implementation_takes_back_were_given(tmp_path: Path) -> None:
    """Every strategy, with keys of nulls and twice in a batch, rows of nulls and both zeros (ROWS-12, ROWS-13)."""
    choose = random.Random(12)
    histories: dict[str, list[str]] = {}
    for name, merge in STRATEGIES.items():
        columns = ", ".join(COLUMNS if name in STREAMS else COLUMNS[1:])
        (tmp_path / f"{name}.yaml").write_text(MANIFEST.format(name=name, merge=merge, columns=columns))
        histories[name] = []
        for number in range(len(FALLBACKS)):
            lines = [",".join(COLUMNS)]
            for _ in range(40):
                op = choose.choice([0, 0, 1] if name == "upserts" else [0, 1, 2, 3])
                key = f"{choose.choice(['', 1, 2, 3])},{choose.choice(['', 'a', 'b'])}"
                rest = f"{choose.choice(['', '0.0', '-0.0', 'NaN', '0.1'])},{choose.choice(['', 'p'])}"
                lines.append(f"{op},{choose.choice(['', '2024-01-01T00:00:00Z'])},{key},{rest}")
            path = tmp_path / f"{name}-{number}.csv"
            path.write_text("".join(f"{line}\n" for line in lines))
            histories[name].append(str(path))
    rows = asyncio.run(_ask_peer(tmp_path, histories, pushed_to=tmp_path / "pushed"))
    node = RealNode(tmp_path / "home")

    for name in STRATEGIES:
        node.must("pull", (tmp_path / "pushed" / name).as_uri(), "--policy", "unsigned")
        stated = node.must("verify", name, "--all").out
        assert ("never given" in stated) == (name == "changelog"), name
        # Where a key stands twice in a snapshot, the row before is taken back for each.
        assert ("too many" in stated) == (name in {"changelog", "snapshot", "compared"}), name
    assert {row["op"] for name in ("snapshot", "compared", "upserts") for row in rows[name]} == {0, 1, 2, 3}


async def _ask_peer(
    folder: Path, histories: dict[str, list[str]], *, pushed_to: Path | None = None
) -> dict[str, list[dict[str, Any]]]:
    peer = await PeerWorkspace.create(folder / "peer")
    found = {}
    for name, files in histories.items():
        await peer.run("add", str(folder / f"{name}.yaml"))
        for path, fallback in zip(files, FALLBACKS, strict=True):
            await peer.run("ingest", name, path, "--event-time", fallback)
        if pushed_to is not None:
            await peer.run("push", name, "--to", (pushed_to / name).as_uri(), "--no-alias")
        found[name] = _rows(await peer.run("tail", name, "-n", "1000", "-o", "ndjson"))
    return found


def _rows(lines: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    # The peer writes NaN as null.
    return [{each: None if row[each] == "NaN" else row[each] for each in row if each != "system_time"} for row in rows]
