"""Images whose programs fetch rows, by the commands that their users type: ING-40 to ING-42."""

import json
from pathlib import Path

import pytest

from support.command_line import list_kept
from support.container_images import manifest_digest, shell_image
from support.nodes import RealNode

pytestmark = pytest.mark.usefixtures("light_engines")

NAME = "example.org/team/pages:1"
ALLOWED = {"ODF_NODE_INGEST_COMMANDS": "sandboxed"}

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: pages
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: Container
        image: %s
        args: ["${{ env.PAGES || 3 }}"]
        env:
          - name: FAILING_PAGE
      read: {kind: Csv, ddlSchema: [event_time TIMESTAMP, n BIGINT]}
      merge: {kind: Append}
"""

# Gives so many pages as it is told, one a run, and says with each where the next run goes on.
PAGES = """
page=$((${ODF_ETAG:-0} + 1))
[ $page -le $1 ] || exit 0
[ $page != $FAILING_PAGE ] || { echo "page $page is not ready" >&2; exit 1; }
echo "2024-01-0${page}T00:00:00Z,$page"
echo $page > $ODF_NEW_ETAG_PATH
[ $page = $1 ] || : > $ODF_NEW_HAS_MORE_DATA_PATH
"""


@pytest.fixture
def node(tmp_path: Path) -> RealNode:
    return RealNode(tmp_path / "home")


def add_image(node: RealNode, *words: str) -> str:
    """Add the image as its user would; return its digest."""
    raw = shell_image(script=PAGES)
    file = node.home.with_name("pages.tar")
    file.write_bytes(raw)
    node.must("image", "add", NAME, str(file), *words)
    return manifest_digest(raw)


def write_manifest(node: RealNode, image: str = NAME) -> str:
    path = node.home.with_name("pages.yaml")
    path.write_text(MANIFEST % image)
    return str(path)


def numbers(node: RealNode) -> list[int]:
    return [json.loads(line)["n"] for line in node.must("tail", "pages", "-n", "100", "-o", "ndjson").out.splitlines()]


def test_each_page_is_taken_once_whatever_fails_on_the_way(node: RealNode) -> None:
    digest = add_image(node)
    node.must("add", write_manifest(node, f"{NAME}@{digest}"), environment=ALLOWED)
    ran = node.run("pull", "pages", environment={**ALLOWED, "FAILING_PAGE": "3"})
    assert ran.code == 5, ran.err
    assert "page 3 is not ready" in ran.err
    assert numbers(node) == [1, 2]

    whole = {**ALLOWED, "FAILING_PAGE": "none", "PAGES": "5"}
    (report,) = node.must("pull", "pages", "-o", "json", environment=whole).json()
    assert (report["newRows"], report["batches"], report["hasMore"]) == (3, 3, False)
    assert "up to date" in node.must("pull", "pages", environment=whole).out
    assert numbers(node) == [1, 2, 3, 4, 5]
    log = node.must("log", "pages", "--output-format", "yaml").out
    assert log.count("kind: odf/etag") == 5


@pytest.mark.parametrize(
    ("added", "allowed", "image", "stated"),
    [
        (True, {}, NAME, "the setting ingest.commands = 'sandboxed'"),
        (False, ALLOWED, NAME, f"odf-node image add {NAME} FILE"),
        (True, ALLOWED, "example.org/team/page:1", "odf-node image add example.org/team/page:1 FILE"),
        (True, ALLOWED, f"{NAME}@sha256:{'0' * 64}", "one of the digests that the file of"),
    ],
    ids=["not-allowed", "not-added", "another", "another-digest"],
)
def test_add_rejects_what_could_never_run_and_makes_nothing(
    node: RealNode, added: bool, allowed: dict[str, str], image: str, stated: str
) -> None:
    if added:
        add_image(node)
    ran = node.run("add", write_manifest(node, image), environment=allowed)
    assert ran.code == 7
    assert stated in ran.err
    assert "content.metadata[0].fetch." in ran.err
    assert list_kept(node.home)["datasets"] == ()


def test_variables_of_this_program_do_not_go_into_an_image(node: RealNode) -> None:
    add_image(node)
    path = Path(write_manifest(node))
    path.write_text(path.read_text().replace("FAILING_PAGE", "ODF_NODE_TOKEN"))
    node.must("add", str(path), environment=ALLOWED)
    before = list_kept(node.home)
    ran = node.run("pull", "pages", environment={**ALLOWED, "ODF_NODE_TOKEN": "s3cret"})
    assert (ran.code, "ODF_NODE_TOKEN" in ran.err, "s3cret" in ran.err) == (3, True, False)
    assert list_kept(node.home) == before


def test_images_are_listed_forgotten_and_noted(node: RealNode) -> None:
    assert "no image was added" in node.must("image", "list").out + node.must("image", "list").err
    digest = add_image(node, "--network")
    (row,) = node.must("image", "list", "-o", "json").json()
    assert (row["name"], row["network"], digest in row["digests"]) == (NAME, "this machine's", True)
    assert "with the network" in node.must("inspect", "audit").out
    (node.home / "images" / "example.org%2Fteam%2Fpages%3A1" / "image.json").write_text("{}")
    (row,) = node.must("image", "list", "-o", "json").json()
    assert f"odf-node image remove {NAME}" in row["damage"]
    node.must("image", "remove", NAME)
    assert node.must("image", "list", "-o", "json").json() == []
    assert node.run("image", "remove", NAME).code == 3
