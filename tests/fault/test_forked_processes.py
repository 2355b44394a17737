"""Processes that fork while they have a home open: what the child commits is there, and so is what the parent commits.

Source: HOME-58 in ``spec/home.md``.
"""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore
from support.store_values import creation

# The child begins when the parent has ended its work, or beside a thread of it that never rests.
FORKING = """\
import os, sys, threading
from contextlib import closing
from pathlib import Path
from odf_node.home_folder import HomeFolder
from odf_node.store import MetadataStore

store = MetadataStore(HomeFolder(Path(sys.argv[1])))
(record,) = store.list_datasets()
ended = threading.Event()
def look():
    while not ended.is_set():
        store.list_datasets()
threads = [threading.Thread(target=look) for _ in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
store.set_published(record.id, False)
go, start = os.pipe()
child = os.fork()
if not child:
    os.close(start)
    os.read(go, 1)
    store.set_published(record.id, True)
    os._exit(0)
ended.set()
for thread in threads:
    thread.join()
store.close()
os.close(start)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("threads", [0, 3])
def test_what_a_forked_child_commits_stays_after_its_parent_closed_the_home(tmp_path: Path, threads: int) -> None:
    home = HomeFolder(tmp_path / "home")
    with closing(MetadataStore(home)) as store:
        store.commit(creation())
    for _ in range(3):
        subprocess.run([sys.executable, "-c", FORKING, str(home.path), str(threads)], check=True, timeout=60)
        with closing(MetadataStore(home)) as store:
            (record,) = store.list_datasets()
            assert record.published
