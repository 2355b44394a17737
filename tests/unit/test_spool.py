"""What was pushed waits in its order, and gives up its room."""

from pathlib import Path

from odf_node.http.uploads import Spool


def test_entries_come_again_in_their_order_as_often_as_they_are_wanted(tmp_path: Path) -> None:
    entries = [b"first", b"", b"x" * 100_000, b"last"]
    with Spool(tmp_path) as spool:
        for entry in entries:
            spool.append(entry)
        assert list(spool) == list(spool) == entries
        assert spool.size_bytes > 100_000
        assert list(tmp_path.iterdir()) == []


def test_reader_that_stops_halfway_disturbs_nobody_who_appends(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        spool.append(b"first")
        spool.append(b"second")
        reading = iter(spool)
        assert next(reading) == b"first"
        spool.append(b"third")
        assert list(reading) == [b"second"]
        assert list(spool) == [b"first", b"second", b"third"]
