"""Clause REPLAY-11: the limits of each re-executed step are those that the command line gives."""

from types import SimpleNamespace

import pytest

from odf_engines.contract import Limits
from odf_node.cli.commands import verify


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ([], {}),
        (["--seconds", "7"], {"wall_s": 7.0}),
        (["--memory", "512"], {"memory_bytes": 512 << 20}),
    ],
)
def test_limits_of_a_step_are_those_asked_for(
    monkeypatch: pytest.MonkeyPatch, words: list[str], changed: dict[str, float]
) -> None:
    import argparse

    engines = SimpleNamespace(limits=Limits())
    monkeypatch.setattr(verify, "_verify_once", lambda *_: [])
    parser = argparse.ArgumentParser()
    verify.configure(parser)
    assert verify.run(SimpleNamespace(node=SimpleNamespace(engines=engines)), parser.parse_args([*words, "some"])) == 0  # type: ignore[arg-type]
    found = {name: getattr(engines.limits, name) for name in changed}
    assert found == changed
    usual = Limits()
    assert all(
        getattr(engines.limits, name) == getattr(usual, name) for name in ("cpu_s", "output_bytes", "output_rows")
    )
