"""A publisher who forges a derivative: whatever is untrue in it is rejected and named, and nothing honest is.

Each honest chain is accepted and verified; then it is forged in one place, with everything else made to fit. The
forgery is rejected under re-execution, from the Seed on or behind the honest beginning that is held; taken on its
metadata and rows alone, it is found by ``verify``.

``ODF_FORGED_CHAINS=400`` makes as many forgeries of each kind of query instead of a few, a new honest chain for each
ten; ``ODF_FORGED_CHAINS_SEED`` makes others. Each failure names its seed.

Source: PLAN-7, PLAN-9 and ACCEPT-4 in ``spec/transform.md`` and ``spec/extensions/acceptance.md``; REPLAY-14 in
``spec/extensions/replay.md``; VERIFY-1 in ``spec/extensions/verification.md``.
"""

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from odf_node.errors import ProposalRejectedError
from odf_node.home_folder import HomeFolder
from odf_node.ports.progress import Silence
from odf_node.trust.verifying import VerificationFinding, Verifier
from odf_protocol.policy import Policy, Trust
from support.forged_derivatives import FORGERS
from support.homes import make_home
from support.honest_derivatives import KINDS, NamedEngines, Published, judge_with_engines
from support.offers import Judge
from support.rebuilt_chains import Forgery

COUNT = int(os.environ.get("ODF_FORGED_CHAINS", "0"))
SEED = int(os.environ.get("ODF_FORGED_CHAINS_SEED", "1"))
OF_ONE_CHAIN = 10
FEW = {"datafusion-map": len(FORGERS)}
"""Forgeries of an ordinary run; of the other kinds, whose steps take ten times as long, ``FEW_OTHERS``."""
FEW_OTHERS = 1
ORDINARY = ("datafusion-map", "spark-map", "spark-view", "spark-windows")


def verify(judge: Judge) -> VerificationFinding:
    record = judge.record("derived")
    assert record is not None
    with judge.opened() as store:
        return Verifier(make_home(judge.home, store), judge.engines).verify(record, on_progress=Silence().on_progress)


def copy_of(judge: Judge, folder: Path) -> Judge:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(judge.home.path, folder)
    return Judge(HomeFolder(folder), NamedEngines(folder.with_suffix(".engines"), HomeFolder(folder)))


class Auditor:
    """A node that holds the inputs, and says what it makes of chains over them."""

    def __init__(self, folder: Path, published: Published) -> None:
        self.folder, self.published = folder, published
        self.with_inputs = judge_with_engines(folder / "judge")
        for root in published.roots:
            self.with_inputs.take(root.proposal(source_url=f"http://peer.example/{root.name}"), root.files)

    def take_honest(self) -> None:
        judge = copy_of(self.with_inputs, self.folder / "honest")
        judge.accept(self.published.chain)
        record = judge.record("derived")
        assert record is not None
        assert (record.head, record.trust) == (self.published.chain.head, Trust.REEXECUTED)
        assert verify(judge).is_valid
        # In two subsets as well.
        judge = copy_of(self.with_inputs, self.folder / "honest")
        early = self.published.chain.up_to(len(self.published.chain.blocks) - 2)
        judge.accept(early)
        judge.accept(self.published.chain, base=early.head)

    def reject(self, forgery: Forgery, *, behind_the_honest: bool) -> None:
        """Check that it is rejected, that what is untrue is named, and that nothing changed."""
        judge, chain, honest = self.with_inputs, forgery.chain, self.published.chain
        base = None
        same = sum(a.hash == b.hash for a, b in zip(chain.blocks, honest.blocks, strict=False))
        same = min(same, forgery.block, len(honest.blocks) - 1)
        if behind_the_honest and same > 1:
            judge = copy_of(judge, self.folder / "held")
            base = honest.up_to(same - 1).head
            judge.accept(honest.up_to(same - 1))
        report = judge.reject(chain.proposal(base), chain.files, rule="")
        reported = f"{report['rule']} {report['reason']}"
        # Where what is left out or forged makes rows be taken back that are not there, that may be told first.
        assert re.search(f"{forgery.names}|ROWS-12", reported), reported
        if forgery.column:
            assert forgery.column in report["divergence"]["columns"], reported
            assert forgery.column in {cell["column"] for cell in report["divergence"]["cells"]}, reported

    def find(self, forgery: Forgery) -> str:
        """Take it without re-execution, where its metadata and rows do not tell, and verify it."""
        judge = copy_of(self.with_inputs, self.folder / "trusting")
        try:
            judge.accept(forgery.chain, policy=Policy.INTEGRITY)
        except ProposalRejectedError:
            return "rejected by its blocks"
        finding = verify(judge)
        assert json.dumps(finding.to_json())
        if finding.is_valid:
            # Each step is what its query gives; that together they are not is what is said of them (PLAN-10).
            assert re.search("leaves out|twice|earlier quer", finding.partial), "verify finds nothing"
            assert finding.partial in " ".join(finding.describe())
            return "found to be partial"
        assert re.search(f"{forgery.names}|ROWS-12", f"{finding.rule} {finding.problem}"), finding.problem
        return "found by verify"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(each, marks=[] if each.startswith("datafusion") else pytest.mark.spark)
        for each in (KINDS if COUNT else ORDINARY)
    ],
)
def test_whatever_is_forged_in_a_derivative_is_rejected_and_nothing_honest_is(kind: str, tmp_path: Path) -> None:
    count = COUNT or FEW.get(kind, FEW_OTHERS)
    done, counts = 0, Counter[str]()
    of_one = OF_ONE_CHAIN if COUNT else count
    for seed in range(SEED, SEED + 1 + (count - 1) // of_one):
        random = Random(f"{kind} {seed}")
        folder = tmp_path / str(seed)
        published = Published.make(folder, KINDS[kind], random)
        auditor = Auditor(folder, published)
        auditor.take_honest()
        # Each once before any comes again, as some find no place.
        names = [name for _ in range(3) for name in random.sample(sorted(FORGERS), len(FORGERS))]
        for name in names:
            if done == count or done >= (seed - SEED + 1) * of_one:
                break
            forgery = FORGERS[name](published, random)
            if forgery is None:
                continue
            try:
                auditor.reject(forgery, behind_the_honest=random.random() < 0.5)
                counts[auditor.find(forgery)] += 1
            except BaseException as error:
                error.add_note(f"{name} of the chain with seed {seed} ({kind})")
                raise
            counts[name] += 1
            done += 1
        shutil.rmtree(folder)
    print(dict(counts))
    assert done == count
