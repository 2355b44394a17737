"""A copy of a home in which each dataset stands as a run found it; files of rows are shared, and no key is copied.

Source: clauses AUDIT-21 and AUDIT-23 in ``spec/plug-ins/audit.md``.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, overload

from odf_audit.reruns import CopiedDataset, RerunPlan
from odf_node.adapters.object_folder import ObjectFolder
from odf_node.adapters.rerun_homes import put_stand_in
from odf_node.commit_point import commit_with_objects
from odf_node.datasets.chains import iter_decoded
from odf_node.errors import UsageError
from odf_node.home import Home
from odf_node.home_folder import HomeFolder
from odf_node.records.commits import Acceptance, Commit, Grounds, NewBlock, NewDataset
from odf_node.records.datasets import Origin
from odf_node.records.errors import mapped_os_errors
from odf_node.store import MetadataStore
from odf_protocol.block import decode_block
from odf_protocol.chain import ChainState, Strictness, append
from odf_protocol.chain.stored_state import encode_state
from odf_protocol.exchange.block_outlines import iter_wanted
from odf_protocol.head import Head
from odf_protocol.multihash import Multihash

if TYPE_CHECKING:
    from odf_node.configuration.declaration import Configuration

_SHARED_FOLDERS: Final = ("engines", "images")
_KEPT_SETTINGS: Final = ("engines", "ingest")
"""Settings that decide how rows are made; the others say who is told and served, which a copy does to nobody."""


@contextmanager
def copied_home(home: Home, plan: RerunPlan, settings: "Configuration", keep: Path | None) -> Iterator[HomeFolder]:
    """Make the copy that a run needs, beside the home, where files can be shared; it is removed unless it is kept.

    Args:
        home: Is read only.
        plan: Says what is copied.
        settings: Of the home.
        keep: A new or empty folder for the copy, which stays; None: one of its own.

    Raises:
        UsageError: The folder has something in it, or is in the home.
        HomeFullError, HomeReadOnlyError: There is no room.
    """
    source = home.folder.path.resolve()
    if keep is not None:
        if home.folder.contains(keep) or (keep.exists() and (not keep.is_dir() or any(keep.iterdir()))):
            raise UsageError(f"{keep}: expected a new or an empty folder, outside of the home, for the copy")
        folder, root = HomeFolder(keep.absolute()), None
    else:
        beside = source.parent if os.access(source.parent, os.W_OK) else None
        root = Path(tempfile.mkdtemp(prefix=".odf-node-rerun-", dir=beside))
        folder = HomeFolder(root / "home")
    try:
        with mapped_os_errors(folder.path):
            folder.create()
            _write_settings(folder, settings)
            for name in _SHARED_FOLDERS:
                if (source / name).is_dir():
                    _copy_tree(source / name, folder.path / name)
            with closing(MetadataStore(folder)) as store:
                for dataset in plan.datasets:
                    _copy_dataset(home, store, folder, dataset)
        yield folder
    finally:
        if root is not None:
            shutil.rmtree(root, ignore_errors=True)


def _copy_tree(source: Path, target: Path) -> None:
    """Copy what was added, without what is only being added and the locks of those who add."""

    def leave_out(at: str, names: list[str]) -> list[str]:
        is_top = Path(at) == source
        return [name for name in names if is_top and (name.startswith(".") or name.endswith(".lock"))]

    shutil.copytree(source, target, copy_function=_share, symlinks=True, ignore=leave_out)


def _copy_dataset(home: Home, store: MetadataStore, folder: HomeFolder, dataset: CopiedDataset) -> None:
    record, blocks = dataset.record, _FirstBlocks(home.store, dataset)
    state, named = blocks.follow()
    absent = frozenset(each for each in named if not home.objects.has(each))
    objects = ObjectFolder(folder)
    with objects.writing():
        for object_hash in named.keys() - absent:
            target = folder.objects / object_hash.digest[:1].hex() / str(object_hash)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            if not target.exists():
                _share(home.objects.get_path(object_hash), target)
        commit = Commit(
            dataset_id=record.id,
            expected_head=None,
            blocks=blocks,
            chain_state=state,
            objects=tuple(named),
            absent=absent,
            acceptance=_find_acceptance(home, dataset, Head(blocks[-1].sequence_number, blocks[-1].hash)),
            new_dataset=NewDataset(
                name=dataset.name,
                kind=record.kind,
                origin=record.origin,
                created_at=record.created_at,
                origin_url=record.origin_url,
                pinned_key=record.pinned_key,
                published=False,
            ),
        )
        commit_with_objects(store, objects, commit, {})
    if record.origin is Origin.OWN:
        put_stand_in(folder, record.id)


class _FirstBlocks(Sequence[NewBlock]):
    """The blocks of a dataset that a run found, read when they are used: long chains are not in memory."""

    def __init__(self, store: MetadataStore, dataset: CopiedDataset) -> None:
        self._store, self._dataset = store, dataset

    def __len__(self) -> int:
        return self._dataset.number + 1

    @overload
    def __getitem__(self, place: int) -> NewBlock: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[NewBlock]: ...
    def __getitem__(self, place: int | slice) -> NewBlock | Sequence[NewBlock]:
        if isinstance(place, slice):
            return [*self][place]
        number = range(len(self))[place]
        stored = self._store.find_block_by_number(self._dataset.record.id, number)
        assert stored is not None  # the plan has looked
        block = decode_block(stored.raw, expected_hash=stored.hash)
        return NewBlock.of(block, stored.signature)

    def __iter__(self) -> Iterator[NewBlock]:
        dataset_id, upto = self._dataset.record.id, self._dataset.number
        steps = dict(self._store.iter_step_records(dataset_id, after=-1, upto=upto))
        for stored in self._store.iter_blocks(dataset_id, upto=upto):
            block = decode_block(stored.raw, expected_hash=stored.hash)
            yield NewBlock.of(block, stored.signature, steps.get(block.sequence_number))

    def follow(self) -> tuple[bytes, dict[Multihash, None]]:
        """Give the state of the chain behind the last one, and the files that they name."""
        state: ChainState | None = None
        named: dict[Multihash, None] = {}
        for block in iter_decoded(self._store, self._dataset.record.id, upto=self._dataset.number):
            # They were judged when they came; this only makes the state by which the next block is judged.
            state, _ = append(state, block, strictness=Strictness.FOREIGN)
            named |= dict.fromkeys(each.hash for each in iter_wanted(block.event))
        assert state is not None
        return encode_state(state), named


def _find_acceptance(home: Home, dataset: CopiedDataset, head: Head) -> Acceptance | None:
    """Say of the blocks of others that they are those that this node accepted."""
    record = dataset.record
    if record.origin is Origin.OWN:
        return None
    reason = "copied from the home of this node, which accepted it"
    return Acceptance(
        head=head,
        trust=record.trust,
        source_url=record.origin_url,
        accepted_at=home.clock.now(),
        grounds=Grounds(first=0, last=head.sequence_number, policy="default", rule="rerun", reason=reason),
    )


def _write_settings(folder: HomeFolder, settings: "Configuration") -> None:
    lines = []
    for section in _KEPT_SETTINGS:
        lines.append(f"[{section}]")
        values = asdict(getattr(settings, section))
        lines += [
            # Texts, numbers and flags of JSON are those of TOML.
            f"{name} = {json.dumps(str(value) if isinstance(value, Path) else value)}"
            for name, value in values.items()
            if value is not None
        ]
    (folder.path / "odf-node.toml").write_text("\n".join([*lines, ""]))


def _share(source: "str | Path", target: "str | Path") -> "str | Path":
    """Give a file that nobody changes a second name; on another disk it is copied."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
    return target
