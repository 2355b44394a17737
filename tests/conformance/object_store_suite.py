"""What every ``ObjectStore`` must do; an adapter's test subclasses this and provides ``make_store``."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import pytest

from odf_node.ports.objects import Arrivals, ObjectStore
from odf_node.records.errors import ObjectMismatchError, ObjectNotFoundError
from odf_protocol.did import DatasetId
from odf_protocol.errors import MalformedError
from odf_protocol.multihash import ARROW0_SHA3_256, Multihash
from odf_protocol.timestamp import Timestamp

DATA = b"slice of rows" * 1000
HASH = Multihash.of_sha3_256(DATA)
SOON = Timestamp.parse("2020-01-01T00:00:00Z")
DATASET = DatasetId(bytes(range(32)))
OTHER_DATASET = DatasetId(bytes(32))
LONG_AFTER = Timestamp.parse("2200-01-01T00:00:00Z")


def put(store: ObjectStore, data: bytes) -> Multihash:
    """Store bytes the way services do."""
    with store.writing(), store.stage() as staged:
        staged.write(data)
        store.put(staged, staged.hash)
        return staged.hash


def arrivals(
    store: ObjectStore, *, brought_by: str = "pull", dataset: DatasetId = DATASET, already: Sequence[Multihash] = ()
) -> Arrivals:
    return store.arrivals(dataset, brought_by, already=already.__contains__)


def bring(arrivals: Arrivals, content: bytes) -> None:
    object_hash = Multihash.of_sha3_256(content)
    with arrivals.resume(object_hash) as staged:
        staged.write(content)
        arrivals.put(staged, object_hash)


class ObjectStoreSuite(ABC):
    @abstractmethod
    def make_store(self) -> ObjectStore:
        """Open the store of this test; a second call opens the same one again, as another process would."""

    @pytest.fixture
    def store(self) -> ObjectStore:
        return self.make_store()

    def test_empty_store_has_nothing(self, store: ObjectStore) -> None:
        assert store.has(HASH) is False
        assert list(store.iter_hashes()) == []
        for method in (store.get_path, store.get_size, store.open, store.check):
            with pytest.raises(ObjectNotFoundError):
                method(HASH)

    def test_object_comes_back_as_it_was(self, store: ObjectStore) -> None:
        assert put(store, DATA) == HASH
        assert store.has(HASH)
        assert store.get_size(HASH) == len(DATA)
        assert store.get_path(HASH).read_bytes() == DATA
        with store.open(HASH) as file:
            assert file.read() == DATA
        store.check(HASH)
        assert list(self.make_store().iter_hashes()) == [HASH]

    def test_empty_object_is_an_object(self, store: ObjectStore) -> None:
        assert store.get_size(put(store, b"")) == 0

    def test_object_written_in_pieces_has_the_hash_of_the_whole(self, store: ObjectStore) -> None:
        with store.writing(), store.stage() as staged:
            for chunk in (DATA[:7], bytearray(DATA[7:500]), memoryview(DATA)[500:]):
                staged.write(chunk)
            assert (staged.hash, staged.size_bytes) == (HASH, len(DATA))
            staged.flush()
            assert staged.path.read_bytes() == DATA
            store.put(staged, HASH)
        store.check(HASH)

    def test_staged_bytes_are_invisible_until_put(self, store: ObjectStore) -> None:
        with store.writing(), store.stage() as staged:
            staged.write(DATA)
            assert not store.has(HASH)

    def test_staged_object_that_is_left_is_gone(self, store: ObjectStore) -> None:
        with store.writing(), store.stage() as staged:
            staged.write(DATA)
            path = staged.path
        assert not path.exists()

    def test_wrong_bytes_are_rejected_and_leave_nothing(self, store: ObjectStore) -> None:
        with store.writing(), store.stage() as staged:
            staged.write(b"other")
            with pytest.raises(ObjectMismatchError) as caught:
                store.put(staged, HASH)
        assert (caught.value.expected, caught.value.found) == (HASH, Multihash.of_sha3_256(b"other"))
        assert list(store.iter_hashes()) == []
        assert not staged.path.exists()

    def test_putting_twice_is_putting_once(self, store: ObjectStore) -> None:
        put(store, DATA)
        put(store, DATA)
        assert list(store.iter_hashes()) == [HASH]

    def test_open_object_stays_readable_when_it_is_deleted(self, store: ObjectStore) -> None:
        put(store, DATA)
        with store.open(HASH) as file:
            store.delete(HASH)
            assert file.read() == DATA
        assert not store.has(HASH)
        store.delete(HASH)

    def test_logical_hash_names_no_object(self, store: ObjectStore) -> None:
        with pytest.raises(ValueError, match="SHA3-256"):
            store.has(Multihash(ARROW0_SHA3_256, HASH.digest))

    def test_file_made_elsewhere_is_copied(self, store: ObjectStore, tmp_path: Path) -> None:
        made = tmp_path / "made-by-engine"
        made.write_bytes(DATA)
        with store.writing(), store.stage_copy(made) as staged:
            made.write_bytes(b"changed after the copy")
            store.put(staged, HASH)
        store.check(HASH)
        with store.open(HASH) as file:
            assert file.read() == DATA

    @pytest.mark.parametrize("kind", ["link", "folder", "pipe", "nothing"])
    def test_what_is_no_plain_file_is_not_copied(self, store: ObjectStore, tmp_path: Path, kind: str) -> None:
        import os

        path = tmp_path / "made-by-engine"
        match kind:
            case "link":
                path.symlink_to("/etc/passwd")
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
        with store.writing(), pytest.raises(MalformedError):
            store.stage_copy(path)

    def test_stopped_download_goes_on_where_it_was(self, store: ObjectStore) -> None:
        with store.writing(), store.resume(HASH) as staged:
            staged.write(DATA[:1000])
        with store.writing(), self.make_store().resume(HASH) as staged:
            assert staged.size_bytes == 1000
            staged.write(DATA[1000:])
            store.put(staged, HASH)
        store.check(HASH)
        with store.writing(), store.resume(HASH) as staged:
            assert staged.size_bytes == 0

    def test_two_downloads_of_one_object_do_not_mix(self, store: ObjectStore) -> None:
        other = self.make_store()
        with store.writing(), store.resume(HASH) as first, other.resume(HASH) as second:
            first.write(DATA[:10])
            assert second.size_bytes == 0
            second.write(DATA)
            other.put(second, HASH)
            first.write(DATA[10:])
            store.put(first, HASH)
        store.check(HASH)

    def test_download_that_turned_out_wrong_starts_again(self, store: ObjectStore) -> None:
        with store.writing(), store.resume(HASH) as staged:
            staged.write(b"wrong")
            staged.restart()
            assert staged.size_bytes == 0
            staged.write(DATA)
            store.put(staged, HASH)
        store.check(HASH)

    def test_wrong_download_is_not_kept_for_a_resume(self, store: ObjectStore) -> None:
        with store.writing(), store.resume(HASH) as staged:
            staged.write(b"wrong")
            with pytest.raises(ObjectMismatchError):
                store.put(staged, HASH)
        with store.writing(), store.resume(HASH) as staged:
            assert staged.size_bytes == 0

    def test_sweep_keeps_what_is_referenced(self, store: ObjectStore) -> None:
        kept, orphan = put(store, b"kept"), put(store, b"orphan")
        report = store.sweep(lambda: [kept], now=SOON)
        assert (report.ran, report.objects, report.freed_bytes) == (True, 1, len(b"orphan"))
        assert (store.has(kept), store.has(orphan)) == (True, False)

    def test_dry_run_of_a_sweep_reports_what_a_sweep_would_and_removes_nothing(self, store: ObjectStore) -> None:
        kept, gone = put(store, b"kept"), put(store, b"gone")
        report = store.sweep(lambda: [kept], now=SOON, dry_run=True)
        assert set(store.iter_hashes()) == {kept, gone}
        assert store.sweep(lambda: [kept], now=SOON) == report
        assert (report.objects, report.freed_bytes) == (1, 4)

    def test_sweep_waits_for_nobody_while_somebody_writes(self, store: ObjectStore) -> None:
        orphan = put(store, b"not yet committed")
        with self.make_store().writing():
            report = store.sweep(lambda: pytest.fail("nothing may be looked at"), now=SOON)
        assert report.ran is False
        assert store.has(orphan)

    def test_sweep_keeps_young_downloads_and_removes_old_ones(self, store: ObjectStore) -> None:
        with store.writing(), store.resume(HASH) as staged:
            staged.write(b"begun")
        assert store.sweep(frozenset, now=SOON).staged_files == 0
        assert staged.path.exists()
        assert store.sweep(frozenset, now=LONG_AFTER).staged_files == 1
        assert not staged.path.exists()

    def test_what_arrived_is_seen_by_its_bringer_for_its_dataset_alone(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as mine, arrivals(store, brought_by="another") as theirs:
            bring(mine, DATA)
            assert (mine.has(HASH), theirs.has(HASH), store.has(HASH)) == (True, False, False)
            with theirs.resume(HASH) as part, arrivals(store, dataset=OTHER_DATASET) as other:
                assert (part.size_bytes, other.has(HASH)) == (0, False)
            for ask in (theirs.get_size, theirs.get_path):
                with pytest.raises(ObjectNotFoundError):
                    ask(HASH)
            with pytest.raises(ObjectNotFoundError):
                theirs.keep([HASH])

    def test_what_lies_in_the_store_counts_for_a_transfer_only_if_its_dataset_has_it(self, store: ObjectStore) -> None:
        put(store, DATA)
        with store.writing(), arrivals(store) as stranger, arrivals(store, already=[HASH], brought_by="b") as owner:
            assert (stranger.has(HASH), owner.has(HASH)) == (False, True)
            assert (owner.get_size(HASH), owner.get_path(HASH)) == (len(DATA), store.get_path(HASH))
            owner.keep([HASH])
            with pytest.raises(ObjectNotFoundError):
                stranger.keep([HASH])
            bring(stranger, DATA)  # the same bytes again
            stranger.keep([HASH])
            stranger.drop()
        store.check(HASH)

    def test_transfer_that_stopped_goes_on_with_what_arrived(self, store: ObjectStore) -> None:
        other = Multihash.of_sha3_256(b"other")
        with store.writing(), arrivals(store) as mine:
            bring(mine, DATA)
            with mine.resume(other) as staged:
                staged.write(b"ot")
        assert store.sweep(frozenset, now=SOON).objects == 0
        with store.writing(), arrivals(self.make_store()) as mine, mine.resume(other) as staged:
            assert (mine.has(HASH), staged.size_bytes) == (True, 2)

    def test_two_transfers_of_one_dataset_at_once_do_not_mix(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as first:
            bring(first, DATA)
            with arrivals(self.make_store()) as second:
                assert not second.has(HASH)
                bring(second, DATA)
                second.keep([HASH])
                second.drop()
            assert first.get_path(HASH).read_bytes() == DATA
            first.keep([HASH])
            first.drop()
        store.check(HASH)
        assert not store.has_leftovers(now=LONG_AFTER)

    def test_what_was_dropped_is_gone(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as mine:
            bring(mine, DATA)
            mine.drop()
            assert not mine.has(HASH)
        with store.writing(), arrivals(store) as mine:
            assert not mine.has(HASH)
        assert not store.has_leftovers(now=LONG_AFTER)

    def test_wrong_bytes_do_not_arrive(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as mine:
            with mine.resume(HASH) as staged:
                staged.write(b"wrong")
                with pytest.raises(ObjectMismatchError):
                    mine.put(staged, HASH)
            assert not mine.has(HASH)

    def test_what_arrived_counts_as_room_that_is_taken(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as mine:
            bring(mine, DATA)
            assert (store.measure().objects, store.measure().used_bytes) == (1, len(DATA))

    def test_what_arrived_goes_after_some_days(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as mine:
            bring(mine, DATA)
        assert not store.has_leftovers(now=SOON)
        assert store.has_leftovers(now=LONG_AFTER)
        assert store.sweep(frozenset, now=LONG_AFTER).objects == 1
        assert not store.has_leftovers(now=LONG_AFTER)

    def test_sweep_on_request_removes_what_had_arrived_whole_and_in_part(self, store: ObjectStore) -> None:
        with store.writing(), arrivals(store) as mine:
            bring(mine, DATA)
        with store.writing(), store.resume(Multihash.of_sha3_256(b"other")) as staged:
            staged.write(b"begun")
        report = store.sweep(frozenset, now=SOON, keep_arrived=False)
        assert (report.objects, report.staged_files) == (1, 1)

    def test_noted_objects_are_deleted_unless_they_are_named(self, store: ObjectStore) -> None:
        named, superseded, other = put(store, b"named"), put(store, b"superseded"), put(store, b"other")
        with store.writing():
            store.delete_later([named, superseded])
        assert store.delete_unnamed(lambda found: found == named)
        assert [store.has(item) for item in (named, superseded, other)] == [True, False, True]
        assert not store.has_leftovers(now=SOON)

    def test_noted_objects_wait_while_somebody_writes(self, store: ObjectStore) -> None:
        superseded = put(store, b"superseded")
        with self.make_store().writing():
            store.delete_later([superseded])
            assert not store.delete_unnamed(lambda _: pytest.fail("nothing may be looked at"))
        assert store.has_leftovers(now=SOON)
        store.sweep(frozenset, now=SOON)
        assert not store.has(superseded)

    def test_writer_that_failed_leaves_word_of_it_until_a_sweep(self, store: ObjectStore) -> None:
        put(store, DATA)
        assert store.has_leftovers(now=SOON) is False
        with pytest.raises(ZeroDivisionError), store.writing():
            raise ZeroDivisionError
        assert store.has_leftovers(now=SOON) is True
        store.sweep(lambda: [HASH], now=SOON)
        assert store.has_leftovers(now=SOON) is False

    def test_sweep_of_an_empty_store_finds_nothing(self, store: ObjectStore) -> None:
        assert store.sweep(frozenset, now=SOON).objects == 0
