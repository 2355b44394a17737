"""The daemon's renewal of signed heads (HEAD-11), by a thread."""

import logging
import time
from typing import Final

from odf_node.composition import Node
from odf_node.daemon.repeated_look import RepeatedLook
from odf_node.http.access_log import write_line
from odf_node.http.served_node import Live
from odf_node.keys.renewing import HeadRenewal
from odf_protocol.errors import OdfError
from odf_protocol.heads import Renewal

LOOK_EACH_S: Final = 2.0  # guess: people wait for a head that follows a commit
TIME_EACH_S: Final = 60.0  # guess: how late a head that is due after hours is signed; commits are looked at at once
_HOUR_S: Final = 3600


class BackgroundRenewal(RepeatedLook):
    """Looks from ``start`` to ``end``; takes its settings from ``live`` each time."""

    def __init__(self, node: Node, live: Live) -> None:
        super().__init__(
            "heads",
            LOOK_EACH_S,
            lambda: (live.configuration.heads, time.monotonic() // TIME_EACH_S, node.store.read_change()),
        )
        self._node = node
        self._live = live
        self._renewal = HeadRenewal(node.home)
        self._problems: dict[str, str] = {}

    def look(self) -> bool:
        """Sign what is due; from one thread at a time."""
        heads = self._live.configuration.heads
        if not heads.renew_hours or not self._node.home.folder.exists():
            return False
        rule = Renewal(heads.renew_hours * _HOUR_S, heads.valid_hours * _HOUR_S)
        try:
            done = self._renewal.renew_due(rule, self._node.clock.now())
        except (OdfError, OSError) as error:
            self._complain("", f"{type(error).__name__}: {error}")
            return True
        self._problems.pop("", None)
        for one in done:
            if one.problem is not None:
                self._complain(one.name, one.problem)
                continue
            self._problems.pop(one.name, None)
            write_line("head-renewed", dataset=one.name)
        return False

    def _complain(self, name: str, problem: str) -> None:
        """Say once what keeps a head from being signed."""
        if self._problems.get(name) != problem:
            self._problems[name] = problem
            write_line("head-not-renewed", level=logging.ERROR, dataset=name or None, text=problem)
