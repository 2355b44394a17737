"""The daemon as a process: settings, reload, TLS, figures, its supervisor (DAEMON-1 to DAEMON-10)."""

import json
import re
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from odf_protocol.multihash import Multihash
from support.daemons import daemon, make_certificate, wait_until
from support.exchange_nodes import Chain, TestNode

SLICE = bytes(range(256)) * 4096


def publish(home: Path) -> str:
    """Make a home with one dataset and return the path of its slice."""
    node = TestNode.create(home)
    node.keep(Chain("demo.data").add(SLICE))
    node.store.close()
    return f"/demo.data/data/{Multihash.of_sha3_256(SLICE)}"


def get(url: str, context: ssl.SSLContext | None = None) -> bytes:
    with urllib.request.urlopen(url, timeout=240, context=context) as answer:
        return bytes(answer.read())


def figures(text: bytes) -> dict[str, float]:
    return {
        line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
        for line in text.decode().splitlines()
        if not line.startswith("#")
    }


def test_daemon_shows_its_figures_and_logs_what_it_sent_of_wholes_and_parts(tmp_path: Path) -> None:
    path = publish(tmp_path / "home")
    with daemon(tmp_path / "home", settings="[observe]\nport = 0\n") as node:
        watch = str(node.log("observable")[0]["url"]).removesuffix("/metrics")
        assert get(f"{node.url}{path}") == SLICE
        assert json.loads(get(f"{watch}/health")) == {"status": "alive", "damaged_objects": 0}
        assert json.loads(get(f"{watch}/ready")) == {"status": "ready"}
        line = node.wait_for("request")[0]
        assert (line["size_bytes"], line["status"]) == (len(SLICE), 200)
        shown = figures(get(f"{watch}/metrics"))
        name = 'odf_node_http_requests_total{method="GET",route="/{dataset}/data/{hash}",status="200"}'
        assert shown[name] == 1
        assert shown["odf_node_http_sent_bytes_total"] == len(SLICE)
        assert shown["odf_node_datasets"] == 1
        assert shown["odf_node_blocks"] == 2
        assert 0 < shown["odf_node_open_descriptors"] < 200
        # What strangers are not meant to see is not on the port for strangers.
        for hidden in ("/metrics", "/health"):
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                get(f"{node.url}{hidden}")
            refused.value.close()
        # Of a part of an object, the size of that part.
        asked = urllib.request.Request(f"{node.url}{path}", headers={"Range": "bytes=10-19"})
        with urllib.request.urlopen(asked, timeout=240) as answer:
            assert answer.read() == SLICE[10:20]
        part = wait_until(
            lambda: next((line for line in node.log("request") if line["status"] == 206), None), node.log_file.read_text
        )
        assert part["size_bytes"] == 10


def test_encrypted_daemon_takes_a_renewed_certificate_at_sighup_daemon_7_flight_1(tmp_path: Path) -> None:
    path = publish(tmp_path / "home")
    certificate, key = make_certificate(tmp_path, "first")
    settings = f'[listen]\nport = 0\nflight_port = 0\n[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
    with daemon(tmp_path / "home", settings=settings) as node:
        assert node.url.startswith("https://")
        before = ssl.create_default_context(cafile=str(certificate))
        assert get(f"{node.url}{path}", before) == SLICE
        host, _, port = node.wait_for("flight")[0]["url"].removeprefix("grpc+tls://").rpartition(":")
        shown = partial(ssl.get_server_certificate, (host, int(port)), timeout=60)
        assert shown() == certificate.read_text()
        renewed, renewed_key = make_certificate(tmp_path, "second")
        # One file alone does not fit the other: nothing changes.
        certificate_bytes = certificate.read_bytes()
        certificate.write_bytes(renewed.read_bytes())
        assert node.reload()["event"] == "reload-failed"
        assert get(f"{node.url}{path}", before) == SLICE
        assert shown().encode() == certificate_bytes
        key.write_bytes(renewed_key.read_bytes())
        assert node.reload(2)["event"] in {"reloaded", "reload-failed"}
        node.wait_for("reloaded")
        after = ssl.create_default_context(cafile=str(renewed))
        assert get(f"{node.url}{path}", after) == SLICE
        assert shown() == renewed.read_text()  # that of Flight SQL too
        assert certificate_bytes != certificate.read_bytes()


def test_setting_of_an_earlier_version_is_told_and_stops_nothing_daemon_2(tmp_path: Path) -> None:
    publish(tmp_path / "home")
    with daemon(tmp_path / "home", settings='[listen]\nport = 0\n[engines]\nquery = "spark"\n') as node:
        assert "engines.query has no effect any more" in node.wait_for("setting-retired")[0]["text"]
        assert json.loads(get(f"{node.url}/_odf/v1/ready")) == {"status": "ready"}


def test_reload_takes_limits_over_and_says_what_needs_a_restart(tmp_path: Path) -> None:
    publish(tmp_path / "home")
    with daemon(tmp_path / "home") as node:
        assert f"serving 1 dataset at {node.url}, to this machine alone; --address" in node.log_file.read_text()
        file = tmp_path / "home.toml"
        file.write_text("[limits]\nrequests = 3\nsend_bytes_per_second = 1000000000\n[observe]\nport = 0\n")
        line = node.reload()
        assert line["changed"] == ["limits.requests", "limits.send_bytes_per_second"]
        assert line["need_restart"] == ["observe.port"]
        file.write_text("[limits]\nrequest = 3\n")
        node.reload(2)
        assert "limits.request: unknown setting. Did you mean 'requests'?" in node.wait_for("reload-failed")[0]["text"]
        assert json.loads(get(f"{node.url}/_odf/v1/ready")) == {"status": "ready"}


def test_sending_keeps_to_the_rate(tmp_path: Path) -> None:
    path = publish(tmp_path / "home")
    with daemon(tmp_path / "home", settings="[limits]\nsend_bytes_per_second = 1048576\n") as node:
        assert get(f"{node.url}{path}") == SLICE
        # Half a second's worth goes at once; the other half of this MiB has to wait.
        assert node.wait_for("request")[0]["duration_ms"] >= 250


def test_supervisor_hears_of_start_reload_and_end(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.settimeout(240)

        def hear() -> str:
            return supervisor.recv(4096).decode()

        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with daemon(tmp_path / "home", environment=environment) as node:
            assert re.fullmatch(r"READY=1\nSTATUS=serving at http://127.0.0.1:\d+", hear())
            node.reload()
            assert hear().startswith("RELOADING=1\nMONOTONIC_USEC=")
            assert hear() == "READY=1"
            node.process.terminate()
            assert hear() == "STOPPING=1"
            assert node.process.wait(timeout=240) == 0


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "odf_node", *words], capture_output=True, text=True, check=False)


def test_setting_that_cannot_be_used_ends_serve_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('[tls]\ncertificate = "/nowhere"\n')
    ended = run("serve", "--config", str(file), "--home", str(tmp_path / "home"))
    assert (ended.returncode, ended.stderr) == (
        2,
        f"odf-node serve: {file}:1: tls: expected both certificate and key, or none of them\n",
    )
    file.write_text("")
    checked = run("serve", "--config", str(file), "--check", "--home", str(tmp_path / "home"))
    assert (checked.returncode, checked.stderr) == (0, f"{file}: every setting can be used\n")


def test_key_that_others_can_read_is_rejected(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    key.chmod(0o644)
    file = tmp_path / "node.toml"
    file.write_text(f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
    ended: Any = run("serve", "--config", str(file), "--home", str(tmp_path / "home"))
    assert ended.returncode == 2
    assert f"chmod 600 {key}" in ended.stderr
