"""A home with two root datasets whose reads and writes are audited, and its log as it is kept."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.command_line import environment_of, run_command

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, ddlSchema: ["city STRING", "people BIGINT"]}}
      merge: {{kind: Append}}
"""
ROWS = "city,people\nLima,10\nOslo,20\n"
WAIT_S = 240


@dataclass(frozen=True)
class AuditedHome:
    """The home, with ``cities`` (two rows) and ``totals`` (none)."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> "AuditedHome":
        """Make the home."""
        audited = cls(folder)
        for name in ("cities", "totals"):
            manifest = folder.with_name(f"{name}.yaml")
            manifest.write_text(MANIFEST.format(name=name))
            audited.run("add", manifest)
        rows = folder.with_name("rows.csv")
        rows.write_text(ROWS)
        audited.run("ingest", "cities", rows)
        return audited

    def run(self, *words: str | Path, code: int = 0) -> str:
        """Run a command; returns its standard output."""
        done = run_command(self.folder, *words)
        assert done.returncode == code, done.stderr
        return done.stdout

    def audit(self, *words: str) -> Any:
        """Ask ``odf-node audit``."""
        return json.loads(self.run("audit", *words, "-o", "json"))

    def start(self, script: Path, *words: str, **more: str) -> "subprocess.Popen[str]":
        """Start a program of a user."""
        return subprocess.Popen(
            [sys.executable, str(script), *words],
            env=environment_of(self.folder, **more),
            cwd=script.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run_script(self, script: Path, *words: str, **more: str) -> str:
        """Run a program of a user to its end."""
        process = self.start(script, *words, **more)
        out, err = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0, err
        return out

    def rows(self, condition: str = "1") -> list[dict[str, Any]]:
        """Read the log as it is kept."""
        with closing(sqlite3.connect(self.folder / "odf-node.sqlite")) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(f"SELECT * FROM audit WHERE {condition} ORDER BY id")]

    def tamper(self, *statements: str) -> None:
        """Change the log as somebody does who can write the file: without its triggers."""
        with closing(sqlite3.connect(self.folder / "odf-node.sqlite")) as connection:
            kept = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in kept:
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                connection.execute(statement)
            for _, sql in kept:
                connection.execute(sql)
            connection.commit()
