"""Conversations of two nodes of another implementation, in ``tests/data/kamu/smart-protocol.jsonl``."""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

RECORDING = Path(__file__).parents[1] / "data" / "kamu" / "smart-protocol.jsonl"


@dataclass
class Recorded:
    """One WebSocket: who said what, in order; ``"client"`` or ``"server"``, and the text."""

    scenario: str
    path: str
    stated: list[tuple[str, bytes]] = field(default_factory=list)

    def texts(self, side: str) -> list[bytes]:
        return [text for who, text in self.stated if who == side]


@cache
def read_recordings() -> dict[str, Recorded]:
    """The WebSocket conversations by scenario; a scenario without one is not in it."""
    found: dict[str, Recorded] = {}
    scenario, current = "", None
    for line in RECORDING.read_text().splitlines():
        entry = json.loads(line)
        if "scenario" in entry:
            scenario, current = entry["scenario"], None
        elif "ws_open" in entry:
            name = scenario if scenario not in found else f"{scenario}, then"
            current = found[name] = Recorded(name, entry["ws_open"])
        elif "text" in entry and current is not None:
            side = "client" if entry["dir"] == "c>s" else "server"
            current.stated.append((side, entry["text"].encode()))
    return {name: conversation for name, conversation in found.items() if conversation.stated}


PULLS = sorted(name for name, found in read_recordings().items() if found.path.endswith("/pull"))
PUSHES = sorted(name for name, found in read_recordings().items() if found.path.endswith("/push"))
