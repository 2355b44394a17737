"""The contract of sinks: one class a plug-in, parameters as a dataclass, entries of quarantine as values.

A package of its own names its class under the entry point group ``odf_sinks``. A sink is given what ingests set aside,
entry by entry, oldest first, after it is durable; it runs in the node's own process, in a thread that no ingest waits
for. What it answers changes nothing of quarantine, which has every row whatever becomes of it here.

Source: clauses SINK-1 to SINK-4 in ``spec/plug-ins/corrections.md``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from odf_node.ports.notices import Told

__all__ = ["BadRows", "Sink", "SinkContext", "Told"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRows:
    """An entry of quarantine (QUAR-1).

    Attributes:
        node: The node's ``did:key:``.
        dataset: Its name here.
        dataset_id: Its DID.
        entry: Number of the entry, unique in the home.
        source: What the rows came from, as a person would name it.
        set_aside_at: When, RFC 3339.
        row_count: How many rows it has.
        why: The limit, where the whole batch waits; else None.
        iter_rows: Gives the rows as JSON values: ``row`` (``3.17``), ``record``, ``line``, ``stage``, ``columns`` as
            they were sent, ``original`` (None where that is no UTF-8), ``errors`` (VALID-8).
    """

    node: str
    dataset: str
    dataset_id: str
    entry: int
    source: str
    set_aside_at: str
    row_count: int
    why: str | None
    iter_rows: Callable[[], Iterator[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """What a sink knows beside its parameters; a manifest that is only checked has an empty one.

    Attributes:
        folder: Of the dataset's sinks, in the home; made when it is first written to.
        environment: Variables of the node, without those that begin with ``ODF_NODE_``.
        send: Sends a signed POST of JSON to an address (NOTICE-3), and says how that went.
    """

    folder: Path = Path()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    send: Callable[[str, bytes], tuple[Told, str]] = lambda _url, _body: (Told.REJECTED, "nothing is sent")


class Sink(ABC):
    """Takes what ingests set aside.

    Attributes:
        Parameters: A frozen dataclass of plain values (texts, numbers, booleans, lists and maps of them); what has no
            default must be declared. A JSON schema is made from it.
    """

    Parameters: ClassVar[type]

    def __init__(self, parameters: Any, context: SinkContext) -> None:
        """Take the declaration; nothing is read, written or sent yet.

        Raises:
            ParameterError: It cannot be followed.
        """
        self.parameters, self.context = parameters, context

    @abstractmethod
    def deliver(self, entry: BadRows) -> tuple[Told, str]:
        """Take an entry; the same may come again after a kill.

        An error that it raises is ``UNAVAILABLE``.

        Returns:
            How it went, and why in a few words: ``DONE``, ``REJECTED`` (it is not given again), or ``UNAVAILABLE`` (it
            is given again later).
        """
