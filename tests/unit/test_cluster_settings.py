"""Clauses CLUSTER-1, CLUSTER-4 to CLUSTER-6: what is rejected before anything is sent; the driver's cage."""

import errno
import json
import os
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from odf_engines.cluster import Cluster
from odf_engines.confined.caller import CallerConfinedProcess
from odf_engines.confined.process import SandboxedProcess
from odf_engines.contract import Limits
from odf_engines.errors import ClusterUnavailableError
from odf_node.configuration import parse_configuration
from odf_node.configuration.reading import ConfigurationError
from odf_spark.cluster import check_facts
from odf_spark.engine import ClusterSession, open_on_cluster
from odf_spark.launch import SECRET, SETTINGS
from odf_spark.masters import cluster_settings, find_driver_address, parse_masters
from odf_spark.runtime import find_runtime, spark_guest
from support.sandboxes import PYTHON, receive_line, small_profile

SECRET_TEXT = "5ecre7" * 10


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    (tmp_path / "shared").mkdir()
    secret = tmp_path / "secret"
    secret.write_text(SECRET_TEXT)
    secret.chmod(0o600)
    return Cluster(master="spark://127.0.0.1:1", shared_folder=tmp_path / "shared", secret=secret)


@pytest.mark.parametrize(
    "text", ["local", "yarn", "spark://", "spark://host", "spark://host:0", "spark://host:65536", "spark://a b:1",
             "spark://host:1,", "spark://host:1/path", "k8s://host:1", "spark://host:1\n"],
)  # fmt: skip
def test_an_address_that_is_no_standalone_cluster_is_a_mistake_in_the_settings(text: str) -> None:
    with pytest.raises(ValueError, match="expected local"):
        parse_masters(text)
    environment = {"ODF_NODE_ENGINES_SPARK_MASTER": text}
    with pytest.raises(ConfigurationError, match=r"engines\.spark_master: expected local"):
        parse_configuration("", source_name="x", environment=environment)


def test_several_masters_are_read_in_their_order() -> None:
    assert parse_masters("spark://one.example:7077,10.0.0.2:7078") == (("one.example", 7077), ("10.0.0.2", 7078))


@pytest.mark.parametrize("missing", ["spark_shared_folder", "spark_secret"])
def test_a_cluster_without_folder_or_secret_is_a_mistake_in_the_settings(missing: str) -> None:
    lines = {"spark_master": "spark://h:1", "spark_shared_folder": "/shared", "spark_secret": "/secret"}
    text = "[engines]\n" + "".join(f'{name} = "{value}"\n' for name, value in lines.items() if name != missing)
    with pytest.raises(ConfigurationError, match=rf"^x:2: engines\.{missing}: a cluster needs this setting too"):
        parse_configuration(text, source_name="x", environment={})


def test_executors_with_more_cores_than_all_together_are_a_mistake_in_the_settings() -> None:
    text = '[engines]\nspark_master = "spark://h:1"\nspark_executor_cores = 5\n'
    expected = r"^x:3: engines\.spark_executor_cores: expected at most spark_cores \(4\), found 5"
    with pytest.raises(ConfigurationError, match=expected):
        parse_configuration(text, source_name="x", environment={})


def test_a_machine_that_lacks_a_layer_of_the_sandbox_uses_no_cluster(cluster: Cluster) -> None:
    guest = replace(spark_guest(find_runtime(), cores=1), arguments={"master": cluster.master})
    for lacking in ({"process": CallerConfinedProcess}, {"has_filter": False}):
        with pytest.raises(ClusterUnavailableError, match="in a whole sandbox only"):
            ClusterSession(guest, cluster.shared_folder, Limits(), **lacking)
    assert list(cluster.shared_folder.iterdir()) == []


def test_secrets_that_others_can_read_or_guess_are_rejected(cluster: Cluster) -> None:
    cluster.check_files()
    for mode in (0o640, 0o604, 0o660):
        cluster.secret.chmod(mode)
        with pytest.raises(ClusterUnavailableError, match="only its owner can read"):
            cluster.check_files()
    cluster.secret.chmod(0o600)
    cluster.secret.write_text("short")
    with pytest.raises(ClusterUnavailableError, match="expected 32 to 4096 bytes"):
        cluster.check_files()
    cluster.secret.unlink()
    with pytest.raises(ClusterUnavailableError, match="No such file"):
        cluster.check_files()


def test_a_master_is_tried_before_an_engine_starts(cluster: Cluster, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        there = Cluster(
            master=f"spark://127.0.0.1:1,127.0.0.1:{listener.getsockname()[1]}",
            shared_folder=cluster.shared_folder,
            secret=cluster.secret,
        )
        assert find_driver_address(there) == "127.0.0.1"
    with pytest.raises(ClusterUnavailableError, match="Connection refused"):
        open_on_cluster(lambda: pytest.fail("an engine was looked for"), cluster, tmp_path, Limits())
    assert list(cluster.shared_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        (
            [("4.3.0", "21.0.8"), ("4.3.0", "17.0.15")],
            "has Spark 4.3.0 on Java 17.0.15; expected Spark 4.3.0 on",
        ),
        (
            [("4.2.0", "21.0.8"), ("4.3.0", "21.0.8")],
            "has Spark 4.2.0 on Java 21.0.8; expected Spark 4.3.0 on",
        ),
        ([("4.3.0", "21.0.8")], "not seen here"),
        ([], "not seen here"),
    ],
)
def test_executors_of_other_versions_or_whose_files_are_not_seen_are_rejected(
    stated: list[tuple[str, str]], reason: str
) -> None:
    here = ("4.3.0", "21.0.8")
    check_facts("spark://h:1", [here, here], [here, here])
    with pytest.raises(ClusterUnavailableError, match=reason):
        check_facts("spark://h:1", stated, [here, here])


def test_settings_for_a_cluster_are_encrypted_name_no_secret_and_change_no_result(cluster: Cluster) -> None:
    settings = cluster_settings(cluster, "10.0.0.1")
    places = {"spark.driver.bindAddress", "spark.driver.host"}
    assert {name for name in settings if name in SETTINGS} == places
    assert SECRET_TEXT not in str(settings)
    assert settings["spark.authenticate"] == settings["spark.network.crypto.enabled"] == "true"
    assert settings["spark.network.crypto.saslFallback"] == "false"


def test_the_driver_has_the_network_and_nothing_else_of_the_machine(cluster: Cluster) -> None:
    guest = spark_guest(find_runtime(), cores=1)
    with ClusterSession(guest, cluster.shared_folder, Limits()) as session:
        profile, folder = session.profile(), session.folder
        assert profile.has_network
        assert profile.has_filter
        writable = [mount for mount in profile.mounts if mount.is_writable]
        assert [(mount.source, mount.target) for mount in writable] == [(folder / "out", str(folder / "out"))]
        shown = {str(mount.source) for mount in profile.mounts}
        assert not [path for path in shown if Path(path) in (cluster.shared_folder, Path.home(), Path("/"))]
        assert SECRET not in shown
        source = cluster.shared_folder.parent / "slice.parquet"
        source.write_bytes(b"rows")
        (folder / "in" / "0").mkdir()
        assert Path(session.show_input(source)).stat().st_ino != source.stat().st_ino, "workers could write to it"


CALLS = """
import json, socket
said = {}
for name, family, place in (("tcp", socket.AF_INET, ("127.0.0.1", PORT)), ("local", socket.AF_UNIX, "\\0" + NAME)):
    try:
        with socket.socket(family) as line:
            line.connect(place)
        said[name] = "reached"
    except OSError as error:
        said[name] = error.strerror
print(json.dumps(said))
"""


def test_a_driver_on_the_network_reaches_no_local_service_of_the_machine(tmp_path: Path) -> None:
    """Names of local sockets without a file belong to the network, which the driver shares; buses listen at some."""
    name = f"odf-node-test-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0{name}")
        local.listen()
        code = CALLS.replace("PORT", str(tcp.getsockname()[1])).replace("NAME", repr(name))

        def call(*, has_network: bool, has_filter: bool = True) -> dict[str, str]:
            profile = replace(small_profile(tmp_path), has_network=has_network, has_filter=has_filter)
            with SandboxedProcess(profile, [*PYTHON, code], Limits()) as process:
                stated: dict[str, str] = json.loads(receive_line(process, 60.0))
                return stated

        assert call(has_network=True) == {"tcp": "reached", "local": os.strerror(errno.EAFNOSUPPORT)}
        assert call(has_network=True, has_filter=False) == {"tcp": "reached", "local": "reached"}
        refused = os.strerror(errno.ECONNREFUSED)
        assert call(has_network=False) == {"tcp": refused, "local": refused}
