"""Rows that a program in a container image fetches: ING-40, ING-41, ING-42."""

import asyncio
import contextlib
import errno
import os
import shutil
import socket
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

import odf_foreign.archive.root_folder
from odf_foreign.image_folder import ImageFolder
from odf_foreign.images import AddedImage
from odf_node.errors import UsageError
from odf_node.home_folder import HomeFolder
from odf_node.machine import examine_machine
from odf_node.ports.sources import (
    Commands,
    Fetched,
    SourceRejectedError,
    SourceTooLargeError,
    SourceUnavailableError,
    UpToDate,
)
from odf_node.records.errors import HomeCorruptError
from odf_node.sources import LocalSourceReader, SourceLimits
from odf_protocol.errors import MalformedError, UnsupportedError
from odf_protocol.events import ETAG, LAST_MODIFIED, EnvVar, FetchStepContainer, SourceState
from odf_protocol.timestamp import Timestamp
from support.container_images import layer_of, manifest_digest, shell_image
from support.engine_archives import Entry, docker_archive, link, program, tar_of

NOW = Timestamp.parse("2024-05-01T00:00:00Z")
NAME = "example.org/team/fetch:1"
LIMITS = SourceLimits(size_bytes=1_000_000, total_s=20, command_disk_bytes=20_000_000, command_processes=20)


@pytest.fixture(scope="module")
def home_with_image(tmp_path_factory: pytest.TempPathFactory) -> HomeFolder:
    """A node with one image, for all tests that say by the manifest what is run in it."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "image.tar").write_bytes(shell_image())
    home = HomeFolder(folder / "home")
    ImageFolder(home).add(NAME, folder / "image.tar", has_network=False, now=NOW)
    return home


class Place:
    """A node's images, and a folder to fetch into."""

    def __init__(self, folder: Path, home: HomeFolder | None = None) -> None:
        self.home = home or HomeFolder(folder / "home")
        self.images = ImageFolder(self.home)
        self.folder = folder / "fetched"
        self.folder.mkdir()
        self.file = folder / "image.tar"

    def add(self, raw: bytes, *, has_network: bool = False) -> AddedImage:
        self.file.write_bytes(raw)
        return self.images.add(NAME, self.file, has_network=has_network, now=NOW)[0]

    def fetch(
        self,
        state: SourceState | None = None,
        *,
        script: str = "",
        commands: Commands = Commands.SANDBOXED,
        limits: SourceLimits = LIMITS,
        **step: Any,
    ) -> Fetched | UpToDate:
        reader = LocalSourceReader(limits=limits, commands=commands, home=self.home)
        shell = {"command": ("/bin/sh", "-c", script)} if script else {}
        wanted = FetchStepContainer(**{"image": NAME, **shell, **step})
        try:
            found = asyncio.run(reader.fetch(wanted, state=state, now=NOW, folder=self.folder))
        except BaseException:
            assert list(self.folder.iterdir()) == []
            raise
        left = [found.path] if isinstance(found, Fetched) else []
        assert list(self.folder.iterdir()) == left
        return found

    def read(self, state: SourceState | None = None, **more: Any) -> str:
        found = self.fetch(state, **more)
        assert isinstance(found, Fetched)
        text = found.path.read_text()
        found.path.unlink()
        return text


@pytest.fixture
def place(tmp_path: Path, home_with_image: HomeFolder) -> Place:
    return Place(tmp_path, home_with_image)


@pytest.fixture
def empty(tmp_path: Path) -> Place:
    return Place(tmp_path)


def etag(value: str) -> SourceState:
    return SourceState(source_name="default", kind=ETAG, value=value)


# ING-40: which image, and what of it is run


def test_output_of_an_image_is_the_data(place: Place) -> None:
    found = place.fetch(script="echo a,b; echo 1,2")
    assert isinstance(found, Fetched)
    assert found == Fetched(path=found.path, name=NAME, source_state=None, event_time=None, has_more=False)
    assert found.path.read_text() == "a,b\n1,2\n"


START = {"Entrypoint": ["/fetch", "first"], "Cmd": ["of-image"]}


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({}, "first of-image"),
        ({"args": ("given", "two words")}, "first given two words"),
        ({"args": ()}, "first"),
        ({"command": ("/bin/sh", "-c", "echo $0 $*", "own")}, "own"),
        ({"command": ("/bin/sh", "-c", "echo $0 $*"), "args": ("own", "x")}, "own x"),
    ],
    ids=["image", "arguments", "no-arguments", "command", "command-and-arguments"],
)
def test_command_stands_for_the_entry_point_and_arguments_for_those_of_the_image(
    empty: Place, step: dict[str, Any], words: str
) -> None:
    empty.add(shell_image(script='echo "$*"', **START))
    assert empty.read(**step) == f"{words}\n"


def test_variables_are_those_of_the_image_the_manifest_and_the_node(
    empty: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_NODE", "1")
    empty.add(shell_image(script="env", Env=["A=image", "B=image=x"]))
    found = dict(line.split("=", 1) for line in empty.read(env=(EnvVar(name="A", value="manifest"),)).splitlines())
    shell = {name: found.pop(name, "") for name in ("PWD", "_", "SHLVL", "OLDPWD")}
    assert shell["PWD"] == "/"
    assert found == {
        "A": "manifest",
        "B": "image=x",
        "HOME": "/tmp",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "ODF_BATCH_SIZE": "10000",
        "ODF_NEW_ETAG_PATH": "/opt/odf/out/new-etag",
        "ODF_NEW_LAST_MODIFIED_PATH": "/opt/odf/out/new-last-modified",
        "ODF_NEW_HAS_MORE_DATA_PATH": "/opt/odf/out/new-has-more-data",
    }


def test_image_is_found_by_its_digest_and_no_other_stands_in_for_it(empty: Place) -> None:
    archive = shell_image()
    empty.add(archive)
    assert empty.read(image=f"{NAME}@{manifest_digest(archive)}") == "none\n"
    other = manifest_digest(shell_image(script="echo other"))
    with pytest.raises(MalformedError, match=other):
        empty.fetch(image=f"{NAME}@{other}")


def test_image_that_was_not_added_is_told_with_the_command_that_adds_it(empty: Place) -> None:
    with pytest.raises(MalformedError, match=rf"odf-node image add {NAME} FILE"):
        empty.fetch()


def test_nobody_runs_an_image_without_the_operators_word(place: Place) -> None:
    with pytest.raises(SourceRejectedError, match=r"ingest\.commands = 'sandboxed'"):
        place.fetch(commands=Commands.NONE)


def test_layout_as_a_folder_is_an_image(empty: Place, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(shell_image())
    with tarfile.open(tmp_path / "a.tar") as tar:
        tar.extractall(tmp_path / "layout", filter="data")
    empty.images.add(NAME, tmp_path / "layout", has_network=False, now=NOW)
    assert empty.read() == "none\n"


NO_IMAGES = {
    "empty": b"",
    "text": b"no archive",
    "root-folder": tar_of([program("engine")]),
    "of-another-system": docker_archive([tar_of([program("fetch")])], {}, os="windows"),
    "folder-of-answers-as-a-link": shell_image(tar_of([link("opt", "tmp")])),
    "link-out-of-it": shell_image(tar_of([link("x", "../../etc")])),
    "zeros": shell_image(tar_of([Entry("zeros", b"0" * 2_000_000)])),
    "environment": shell_image(Env=["no sign"]),
}


@pytest.mark.parametrize("raw", NO_IMAGES.values(), ids=NO_IMAGES.keys())
def test_what_is_no_image_is_rejected_and_leaves_nothing(
    empty: Place, raw: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if b"zeros" in raw:
        monkeypatch.setattr(odf_foreign.archive.root_folder, "_MAX_UNPACKED_BYTES", 1_000_000)
    with pytest.raises((MalformedError, UnsupportedError)):
        empty.add(raw)
    assert [path.name for path in empty.home.images.iterdir()] == ["images.lock"]
    assert empty.images.list() == ()


def test_second_image_of_a_name_is_rejected_and_the_first_stays(empty: Place) -> None:
    first = empty.add(shell_image())
    with pytest.raises(UsageError, match=f"odf-node image remove {NAME}"):
        empty.add(shell_image(script="echo other"))
    assert empty.images.list() == (first,)
    empty.images.remove(NAME)
    assert [path.name for path in empty.home.images.iterdir()] == ["images.lock"]
    empty.add(shell_image(script="echo other"))
    assert empty.read() == "other\n"


def test_files_that_were_changed_since_are_noticed_before_anything_runs(empty: Place) -> None:
    image = empty.add(shell_image())
    (empty.images.open_root(image) / "fetch").write_text("#!/bin/sh\necho changed\n")
    with pytest.raises(HomeCorruptError, match=f"odf-node image remove {NAME}"):
        empty.fetch()
    assert find_reported(empty) == (False, f"odf-node image remove {NAME}, and add it again")


def find_reported(place: Place) -> tuple[bool, str]:
    """What ``doctor`` says of the image."""
    (reported,) = [each for each in examine_machine(place.home.path) if each.what == f"image {NAME}"]
    return reported.ok, reported.fix


def test_images_are_listed_by_doctor(empty: Place) -> None:
    image = empty.add(shell_image())
    assert find_reported(empty) == (True, "")
    (empty.images.open_root(image).parent / "image.json").write_text("{")
    assert find_reported(empty) == (False, f"odf-node image remove {NAME}, and add it again")


# ING-42: state


def test_program_is_told_the_state_and_tells_the_next(place: Place) -> None:
    found = place.fetch(etag("v1"), script='echo "had ${ODF_ETAG-none}"; echo v2 > $ODF_NEW_ETAG_PATH')
    assert isinstance(found, Fetched)
    assert (found.path.read_text(), found.source_state, found.has_more) == ("had v1\n", etag("v2"), False)


def test_date_of_a_state_goes_the_same_way(place: Place) -> None:
    found = place.fetch(
        SourceState(source_name="default", kind=LAST_MODIFIED, value="2024-01-01T00:00:00Z"),
        script="echo $ODF_LAST_MODIFIED; echo 2024-02-03T04:05:06Z > $ODF_NEW_LAST_MODIFIED_PATH",
    )
    assert isinstance(found, Fetched)
    assert found.path.read_text() == "2024-01-01T00:00:00Z\n"
    assert found.source_state == SourceState(source_name="default", kind=LAST_MODIFIED, value="2024-02-03T04:05:06Z")


def test_more_data_is_announced_by_a_file(place: Place) -> None:
    found = place.fetch(script="echo 1; echo v1 > $ODF_NEW_ETAG_PATH; touch $ODF_NEW_HAS_MORE_DATA_PATH")
    assert isinstance(found, Fetched)
    assert found.has_more


@pytest.mark.parametrize(
    "script",
    ["true", "echo v1 > $ODF_NEW_ETAG_PATH", ": > $ODF_NEW_ETAG_PATH"],
    ids=["silent", "same", "empty"],
)
def test_no_data_and_no_new_state_is_nothing_new(place: Place, script: str) -> None:
    assert place.fetch(etag("v1"), script=script) == UpToDate()


def test_data_under_the_state_of_before_are_rejected(place: Place) -> None:
    with pytest.raises(MalformedError, match="the state of before"):
        place.fetch(etag("v1"), script="echo 1; echo v1 > $ODF_NEW_ETAG_PATH")


# ING-41: what it can do


def test_program_that_fails_is_told_with_its_last_words(place: Place) -> None:
    with pytest.raises(SourceUnavailableError, match="exit code 3: out of luck"):
        place.fetch(script="echo 1; echo out of luck >&2; exit 3")


def test_program_that_is_not_in_the_image_is_told(empty: Place) -> None:
    empty.add(shell_image(Entrypoint=["/no/such"]))
    with pytest.raises(SourceUnavailableError, match="/no/such"):
        empty.fetch()


def test_only_temporary_files_and_the_folder_of_answers_can_be_written(place: Place) -> None:
    tries = "; ".join(f"touch {where}/x 2>/dev/null && echo {where}" for where in ("/", "/bin", "/etc", "/dev", "/opt"))
    assert place.read(script=f"{tries}; touch /tmp/x && echo /tmp; touch /opt/odf/out/x && echo out") == "/tmp\nout\n"


def test_files_of_this_machine_are_not_there(place: Place, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    read = f"cat {tmp_path}/secret /etc/passwd /proc/1/environ /home/* 2>/dev/null"
    assert place.read(script=f"{read}; echo done") == "done\n"


def test_streams_by_name_lose_nothing(place: Place) -> None:
    assert place.read(script="echo 1 > /dev/stdout; echo 2 > /dev/stdout; echo 3") == "1\n2\n3\n"


@pytest.mark.parametrize("has_network", [True, False], ids=["with", "without"])
def test_network_is_there_only_where_the_operator_said_so(empty: Place, has_network: bool) -> None:
    # The shell knows no sockets; the machine's interfaces are told by the kernel.
    empty.add(shell_image(script="cat /proc/net/dev"), has_network=has_network)
    names = {line.split(":")[0].strip() for line in empty.read().splitlines() if ":" in line}
    assert names == ({name for _, name in socket.if_nameindex()} if has_network else {"lo"})


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here, which opens sockets with a line of text")
def test_program_with_the_network_reaches_no_local_socket_of_the_machine(empty: Place) -> None:
    """Names of local sockets without a file belong to the network that it shares."""
    code = 'for (1, 2) { print socket(S, $_, 1, 0) ? "opened" : $!, "\\n" }'
    empty.add(shell_image(layer_of("perl"), script=f"perl -e '{code}'"), has_network=True)
    assert empty.read() == f"{os.strerror(errno.EAFNOSUPPORT)}\nopened\n"


def list_command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return found


def test_secrets_of_variables_stand_on_no_command_line(place: Place) -> None:
    secret, mark = EnvVar(name="TOKEN", value="hunter2"), b"echo $TOKEN; sleep 1.5"
    seen: list[bytes] = []

    def look() -> None:
        while not seen:
            seen.extend(each for each in list_command_lines() if mark in each)

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    assert place.read(script=mark.decode(), env=(secret,)) == "hunter2\n"
    assert seen
    assert not any(b"hunter2" in each for each in seen)


# What a hostile image tries


HOSTILE_STATE = {
    "link": "ln -s {secret} $ODF_NEW_ETAG_PATH",
    "pipe": "mkfifo $ODF_NEW_ETAG_PATH",
    "folder": "mkdir $ODF_NEW_ETAG_PATH",
    "long": "yes | head -c 100000 > $ODF_NEW_ETAG_PATH",
    "lines": r"printf 'a\nb' > $ODF_NEW_ETAG_PATH",
    "zero-byte": r"printf 'a\000--bind\000/\000/x' > $ODF_NEW_ETAG_PATH",
    "no-text": r"printf '\377' > $ODF_NEW_ETAG_PATH",
    "no-date": "echo yesterday > $ODF_NEW_LAST_MODIFIED_PATH",
}


@pytest.mark.parametrize("script", HOSTILE_STATE.values(), ids=HOSTILE_STATE.keys())
def test_state_that_is_no_line_of_text_in_a_file_is_rejected(place: Place, tmp_path: Path, script: str) -> None:
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(MalformedError):
        place.fetch(script=f"echo 1; {script.replace('{secret}', str(tmp_path / 'secret'))}")


@pytest.mark.parametrize("value", ["v\0--bind\0/\0/host", "\udcff\0"], ids=["arguments", "no-text"])
def test_state_of_a_chain_that_would_be_more_than_a_variable_runs_nothing(place: Place, value: str) -> None:
    with pytest.raises(MalformedError, match="U\\+0000"):
        place.fetch(etag(value), script="echo ran")


HOSTILE_USE = {
    "output": ("yes", "size_bytes"),
    "disk": ("yes > /tmp/x", "command_disk_bytes"),
    "answers": ("yes > /opt/odf/out/x", "command_disk_bytes"),
    "deleted": ("exec 5>/tmp/x; rm /tmp/x; yes >&5", "command_disk_bytes"),
    "processes": ("while :; do sleep 9 & done", "command_processes"),
    "files": ("i=0; while :; do i=$((i+1)); : > /tmp/$i; done", "command_files"),
}


@pytest.mark.parametrize(("script", "limit"), HOSTILE_USE.values(), ids=HOSTILE_USE.keys())
def test_program_that_takes_too_much_is_ended(place: Place, script: str, limit: str) -> None:
    with pytest.raises(SourceTooLargeError, match=limit):
        place.fetch(script=script)


def test_program_that_does_not_end_is_ended_with_all_that_it_started(place: Place) -> None:
    with pytest.raises(SourceUnavailableError, match="did not end within 1 s"):
        place.fetch(script="sleep 4321 & sleep 4321", limits=SourceLimits(total_s=1))
    assert not any(b"4321" in each for each in list_command_lines())


def test_what_it_leaves_is_removed_whatever_its_modes(place: Place) -> None:
    assert place.read(script="mkdir -p /tmp/a/b; echo > /tmp/a/b/c; chmod 0 /tmp/a/b /tmp/a; echo 1") == "1\n"


def test_flood_that_is_rejected_is_not_waited_for(place: Place) -> None:
    # What nobody reads any more stands in the way of its end, if it is more than a reader takes at once.
    for _ in range(10):
        with pytest.raises(SourceTooLargeError, match="size_bytes"):
            place.fetch(script="yes & yes & yes", limits=SourceLimits(size_bytes=400_000, total_s=20))
