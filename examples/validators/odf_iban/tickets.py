"""A sink: a note for people about each entry of quarantine. Apart from the validator: no sandbox has it."""

from dataclasses import dataclass
from itertools import islice

from odf_node.ports.sinks import BadRows, Sink, Told


class Tickets(Sink):
    """Writes a file for each entry, which says whose it is, how many rows it has and what is wrong with the first."""

    @dataclass(frozen=True, kw_only=True)
    class Parameters:
        owner: str
        rows: int = 10

    def deliver(self, entry: BadRows) -> tuple[Told, str]:
        lines = [f"For {self.parameters.owner}: {entry.row_count} rows of {entry.source} ({entry.dataset})"]
        for row in islice(entry.iter_rows(), self.parameters.rows):
            lines += [f"- {row['row']}: {error['message']}" for error in row["errors"]]
        folder = self.context.folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # By its number: the same entry again, after a kill, is the same file.
        (folder / f"ticket-{entry.entry}.md").write_text("\n".join(lines) + "\n")
        return Told.DONE, f"ticket {entry.entry}"
