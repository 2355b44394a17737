"""``inspect lineage -o dot`` and ``-o mermaid``: the graph of what a dataset is derived from (PLAN-18)."""

from pathlib import Path

from odf_node.derive.lineage import LineageDataset, LineageInput, write_dot, write_mermaid
from odf_protocol.did import DatasetId
from support.nodes import RealNode

MANIFEST = """
kind: DatasetSnapshot
version: 1
content: {{name: {name}, kind: Root, metadata: []}}
"""
DERIVED = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{inputs}]
      transform: {{kind: Sql, engine: spark, query: "SELECT * FROM a"}}
"""


def derived(name: str, **inputs: str) -> str:
    listed = ", ".join(f"{{datasetRef: {source}, alias: {alias}}}" for alias, source in inputs.items())
    return DERIVED.format(name=name, inputs=listed)


def test_lineage_is_drawn_down_to_the_roots_each_dataset_once(tmp_path: Path) -> None:
    node = RealNode(tmp_path / "node")
    texts = [MANIFEST.format(name="left"), MANIFEST.format(name="right")]
    texts += [derived("both", a="left", b="right"), derived("top", a="both", again="left")]
    (tmp_path / "all.yaml").write_text("---".join(texts))
    node.must("add", str(tmp_path / "all.yaml"))

    dot = node.must("inspect", "lineage", "top", "-o", "dot").out.splitlines()
    assert dot[0] == "digraph lineage {"
    assert dot[3:7] == [
        r'  n0 [label="top\nderived by spark\nown"];',
        r'  n1 [label="both\nderived by spark\nown"];',
        r'  n2 [label="left\nroot\nown"];',
        r'  n3 [label="right\nroot\nown"];',
    ]
    edges = [(1, 0, "a"), (2, 0, "again"), (2, 1, "a"), (3, 1, "b")]
    assert dot[7:] == [*(f'  n{source} -> n{target} [label="{alias}"];' for source, target, alias in edges), "}"]
    mermaid = node.must("inspect", "lineage", "top", "-o", "mermaid").out.splitlines()
    assert mermaid[:2] == ["flowchart LR", '  n0["top<br/>derived by spark<br/>own"]']
    assert mermaid[5:] == [f'  n{source} -->|"{alias}"| n{target}' for source, target, alias in edges]


def test_texts_of_others_stay_labels() -> None:
    inner, outer = DatasetId(b"\1" * 32), DatasetId(b"\2" * 32)
    alias = 'x"]; n9 -> n0 \\ <b>#1;\n\x1b[2J'
    lineage = [
        LineageDataset(outer, "outer", "own", "spark", (LineageInput(inner, alias),)),
        LineageDataset(inner),
    ]
    *_, edge, end = write_dot(lineage)
    assert (edge, end) == (r'  n1 -> n0 [label="x\"]; n9 -> n0 \\ <b>#1;  [2J"];', "}")
    *_, edge = write_mermaid(lineage)
    assert edge == '  n1 -->|"x#quot;]; n9 -#gt; n0 \\ #lt;b#gt;#35;1;  [2J"| n0'
    assert f'  n1 [label="{inner}\\nnot in this node"];' in list(write_dot(lineage))
