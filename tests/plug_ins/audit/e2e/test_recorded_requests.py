"""Who reads and writes over a network is found in the audit log of the node that answered (AUDIT-2)."""

import json
import urllib.request
from pathlib import Path

from support.audited_homes import ROWS, AuditedHome
from support.command_line import run_command
from support.daemons import daemon, wait_until


def test_requests_are_recorded_by_who_makes_them(tmp_path: Path) -> None:
    """AUDIT-2, AUDIT-4, AUDIT-11: the token, or the share of an address; what a program calls itself, made harmless."""
    audited = AuditedHome.create(tmp_path / "home")
    audited.run("publish", "cities")
    did = audited.audit("who-wrote", "cities")[0]["datasetId"]
    made = json.loads(audited.run("token", "create", "newsroom", "--dataset", "cities", "-o", "json"))
    with daemon(audited.folder) as served:
        assert run_command(tmp_path / "reader", "pull", f"{served.url}/cities").returncode == 0
        request = urllib.request.Request(
            f"{served.url}/{did}/ingest",
            data=ROWS.encode(),
            method="POST",
            headers={
                "Authorization": f"Bearer {made['token']}",
                "Content-Type": "text/csv",
                "User-Agent": "job " + "x" * 2_000,
            },
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
        reads = wait_until(lambda: audited.audit("who-read", "cities") or None, lambda: "no read is recorded")
    write = audited.audit("who-wrote", "cities")[-1]
    assert (write["door"], write["caller"]) == ("http", f"token:{made['id']}")
    assert write["agent"].startswith("job x")
    assert len(write["agent"]) == 200
    assert audited.audit("inputs-of", "cities") == []
    reads = audited.audit("who-read", "cities")
    assert {read["door"] for read in reads} == {"http"}
    assert all(read["caller"].startswith("address:") for read in reads)
    assert {read["what"] for read in reads} == {"blocks", "file"}
    # The reader has a log of its own, in which the pull is a write.
    pulled = run_command(tmp_path / "reader", "audit", "who-wrote", "cities", "-o", "json")
    assert [write["work"] for write in json.loads(pulled.stdout)] == ["pull"]
