"""A log from elsewhere names a command to be started again: nothing of it is started."""

import json
from pathlib import Path

import pytest

from support.audited_homes import AuditedHome

JOB = "import odf_node\nwith odf_node.open() as node:\n    len(node.table('cities').to_arrow())\n"


@pytest.mark.parametrize("is_signed_by_another", [False, True])
def test_command_that_this_node_did_not_sign_is_not_started(tmp_path: Path, is_signed_by_another: bool) -> None:
    """AUDIT-22: neither one that was put into the log, nor one whose log another node has written."""
    audited = AuditedHome.create(tmp_path / "home")
    script = tmp_path / "job.py"
    script.write_text(JOB)
    audited.run_script(script)
    *_, row = audited.rows("command = 'run'")
    marker = tmp_path / "started"
    if is_signed_by_another:
        script.write_text(JOB)
        (audited.folder / "keys" / "node.pem").unlink()
        audited.run("tail", "totals")  # makes another key
    else:
        told = json.loads(str(row["record"]))
        told["words"] = ["touch", str(marker)]
        record = json.dumps(told, separators=(",", ":")).replace("'", "''")
        audited.tamper(f"UPDATE audit SET record = '{record}' WHERE id = {row['id']}")
    audited.run("audit", "rerun", str(row["run"]), code=2)
    audited.run("audit", "rerun", str(row["run"]), "--", "touch", str(marker), code=2)
    assert not marker.exists()
