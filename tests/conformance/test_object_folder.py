import os
import shutil
from pathlib import Path

import pytest

from conformance.object_store_suite import DATA, HASH, SOON, ObjectStoreSuite, put
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.home_folder import HomeFolder
from odf_node.records.errors import HomeCorruptError, ObjectCorruptError


class TestObjectFolder(ObjectStoreSuite):
    @pytest.fixture(autouse=True)
    def _home(self, tmp_path: Path) -> None:
        self.home = HomeFolder(tmp_path / "home")

    def make_store(self) -> ObjectFolder:
        return ObjectFolder(self.home)

    def test_object_lies_under_the_first_byte_of_its_digest(self, store: ObjectFolder) -> None:
        put(store, DATA)
        assert store.get_path(HASH) == self.home.objects / HASH.digest.hex()[:2] / str(HASH)

    def test_reading_makes_no_home(self, store: ObjectFolder) -> None:
        assert not store.has(HASH)
        store.sweep(frozenset, now=SOON)
        assert not self.home.path.exists()

    def test_link_in_the_place_of_an_object_is_rejected(self, store: ObjectFolder, tmp_path: Path) -> None:
        put(store, DATA)
        place = store.get_path(HASH)
        elsewhere = tmp_path / "elsewhere"
        place.rename(elsewhere)
        place.symlink_to(elsewhere)
        assert store.has(HASH) is False
        for method in (store.get_path, store.open, store.check, store.get_size):
            with pytest.raises(HomeCorruptError, match="link"):
                method(HASH)
        put(store, DATA)
        assert not place.is_symlink()
        assert elsewhere.read_bytes() == DATA

    def test_room_is_measured_while_transfers_end(self, store: ObjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        put(store, DATA)
        for name in ("one", "other"):
            (self.home.downloads / name).mkdir(parents=True)
            (self.home.downloads / name / "part").write_bytes(DATA)
        really_look = Path.lstat

        def look(path: Path) -> os.stat_result:
            found = really_look(path)
            if path.name == "part":
                for transfer in self.home.downloads.iterdir():
                    if transfer != path.parent:
                        shutil.rmtree(transfer)
            return found

        monkeypatch.setattr(Path, "lstat", look)
        assert store.measure().used_bytes == 2 * len(DATA)

    def test_flipped_byte_is_found_and_fixed_by_putting_again(self, store: ObjectFolder) -> None:
        put(store, DATA)
        place = store.get_path(HASH)
        place.write_bytes(b"S" + DATA[1:])
        with pytest.raises(ObjectCorruptError) as caught:
            store.check(HASH)
        assert caught.value.path == place
        put(store, DATA)
        store.check(HASH)

    def test_files_with_foreign_names_are_passed_over(self, store: ObjectFolder) -> None:
        put(store, DATA)
        stray = self.home.objects / "00" / "notes.txt"
        stray.parent.mkdir(exist_ok=True)
        stray.write_text("mine")
        (self.home.objects / "ff" / str(HASH)).parent.mkdir(exist_ok=True)
        (self.home.objects / "ff" / str(HASH)).write_bytes(DATA)
        assert list(store.iter_hashes()) == [HASH]
        store.sweep(lambda: [HASH], now=SOON)
        assert stray.exists()

    def test_sweep_removes_what_crashed_writers_staged(self, store: ObjectFolder) -> None:
        put(store, DATA)
        (self.home.staging / "object-0").write_bytes(b"12345")
        workspace = self.home.staging / "engine-0"
        (workspace / "out").mkdir(parents=True)
        (workspace / "out" / "data").write_bytes(b"123")
        evidence = self.home.refused / "0" / "report.json"
        evidence.parent.mkdir(parents=True)
        evidence.write_text("{}")
        report = store.sweep(lambda: [HASH], now=SOON)
        assert report.staged_files == 2
        assert sorted(path.name for path in self.home.staging.iterdir()) == ["downloads", "refused"]
        assert evidence.exists()

    def test_objects_and_home_are_for_the_owner_only(self, store: ObjectFolder) -> None:
        put(store, DATA)
        assert store.get_path(HASH).stat().st_mode & 0o077 == 0
        assert self.home.path.stat().st_mode & 0o077 == 0
