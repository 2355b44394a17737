"""``completion``: a script for each shell that knows every command, and that the shell itself can read."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from odf_node.cli import registry
from odf_node.cli.main import main

SHELLS = ("bash", "zsh", "fish")


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_script_knows_every_command_and_its_options(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    text = script(capsys, shell)
    assert [name for name in registry.list_names() if name not in text] == []
    for option in ("dry-run", "system-time", "set-watermark", "stolen-from"):
        assert option in text


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_reads_the_script(capsys: pytest.CaptureFixture[str], tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not on this machine")
    path = tmp_path / "script"
    path.write_text(script(capsys, shell))
    done = subprocess.run([program, "-n", path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_commands_options_files_and_datasets(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bash itself: the function that the script registers is called as Tab calls it."""
    path = tmp_path / "script"
    path.write_text(script(capsys, "bash"))
    (tmp_path / "sales.csv").write_text("")

    def complete(*words: str) -> set[str]:
        asked = " ".join(f"'{word}'" for word in words)
        program = (
            f"source '{path}'; cd '{tmp_path}'; COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1};"
            " name=$(complete -p odf-node | sed 's/.*-F \\([^ ]*\\).*/\\1/'); $name odf-node '' ''; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
        return {line.strip() for line in done.stdout.splitlines()}

    # Names of datasets are asked of the program, which stands in the path.
    program = tmp_path / "odf-node"
    program.write_text("#!/bin/sh\n[ \"$*\" = 'list -o names' ] && printf 'my.cities\\nmy.lakes\\nrivers\\n'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert complete("odf-node", "tail", "my.") == {"my.cities", "my.lakes"}
    assert "rivers" in complete("odf-node", "verify", "ri")
    assert {"rename", "repair", "repo", "restore"} <= complete("odf-node", "re")
    assert "--dry-run" in complete("odf-node", "pull", "--d")
    assert "sales.csv" in complete("odf-node", "ingest", "sales", "sa")


_ZSH = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1='> '; source {script}; print -r -- re''ady"
zpty -r z told '*ready*'
zpty -w -n z $'odf-node quarant\\tsho\\tmy.c\\t'
zpty -r z told '*quarantine*show*my.cities*'
print -r -- completed
zpty -d z
"""


def test_zsh_completes_from_a_script_that_it_sources_and_asks_for_names_when_tab_does(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In zsh itself, at a terminal: a script that asks for names when it is read makes each new shell slow."""
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("zsh is not on this machine")
    path, asked = tmp_path / "script", tmp_path / "asked"
    path.write_text(script(capsys, "zsh"))
    program = tmp_path / "odf-node"
    program.write_text(f"#!/bin/sh\necho asked >> '{asked}'\nprintf 'my.cities\\nrivers\\n'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(tmp_path))  # where its own completions are noted
    sourced = subprocess.run(
        [zsh, "-f", "-c", f"compdef() {{ print -r -- \"$@\" }}; source '{path}'"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sourced.stdout.split() == ["_shtab_odf_node", "-N", "odf-node"]
    assert sourced.stderr == ""
    assert not asked.exists()
    program_of_zsh = _ZSH.format(script=path)
    done = subprocess.run([zsh, "-f", "-c", program_of_zsh], capture_output=True, text=True, check=True, timeout=90)
    assert done.stdout.split() == ["completed"]
    assert asked.read_text().split() == ["asked"]


def test_fish_completes_commands_actions_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not on this machine")
    path = tmp_path / "script"
    path.write_text(script(capsys, "fish"))

    def complete(line: str) -> set[str]:
        program = f"source '{path}'; complete -C '{line}'"
        done = subprocess.run(
            [fish, "--no-config", "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"HOME": str(tmp_path)},
        )
        return {each.partition("\t")[0] for each in done.stdout.splitlines()}

    assert complete("odf-node sea") == {"search"}
    assert complete("odf-node search --f") == {"--far"}
    assert {"list", "show", "fix"} <= complete("odf-node quarantine ")


def test_help_says_where_each_shell_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["completion", "--help"])
    shown = capsys.readouterr().out
    assert all(f"odf-node completion {shell} > ~/" in shown for shell in SHELLS)


def test_shell_that_is_not_known_is_rejected_with_those_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2
    stated = capsys.readouterr().err
    assert all(shell in stated for shell in ("bash", "zsh", "fish"))
