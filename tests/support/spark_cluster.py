"""A standalone cluster of stock Spark on the loopback: a master and workers, as an operator starts them."""

import os
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from odf_spark.runtime import find_runtime

ADDRESS = "127.0.0.1"
_APPEAR_S = 120.0  # guess: a JVM on a machine that is busy
_READY = {"Master": re.compile(r"I have been elected leader"), "Worker": re.compile(r"Successfully registered")}
_WITHOUT_MODULE = """#!/bin/sh
for each do
    shift
    [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"
done
exec '{java}' "$@"
"""
_DEFAULTS = "spark-defaults.conf"
_FINISHED = re.compile(r"Finished task ([0-9.]+ in stage [0-9.]+)")
_PORT = re.compile(r"Starting Spark master at spark://[^:]+:(\d+)")


@dataclass(frozen=True, slots=True)
class LoopbackCluster:
    """A cluster that runs.

    Attributes:
        master: As the setting names it.
        secret: File with what the cluster asks of whoever speaks to it.
        folder: Has the logs of its parts.
    """

    master: str
    secret: Path
    folder: Path

    def finished_tasks(self) -> list[set[str]]:
        """Which tasks each executor finished, as its log says: ``1.0 in stage 3.0`` is the second of a stage."""
        logs = sorted(self.folder.glob("worker-*/app-*/*/stderr"))
        return [set(_FINISHED.findall(log.read_text(errors="replace"))) for log in logs]


@contextmanager
def loopback_cluster(folder: Path, *, workers: int = 2) -> Iterator[LoopbackCluster]:
    """Start master and workers, each with one core and 1 GiB, and end them with the block.

    Args:
        folder: Existing; for their logs.
        workers: How many.
    """
    secret = folder / "secret"
    secret.write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    asked = {
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
        "spark.network.crypto.saslFallback": "false",
        "spark.io.encryption.enabled": "true",
        "spark.master.rest.enabled": "false",
    }
    defaults = folder / _DEFAULTS
    lines = {**asked, "spark.authenticate.secret": secret.read_text()}
    defaults.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
    started: list[subprocess.Popen[bytes]] = []
    try:
        here = ("--host", ADDRESS, "--webui-port", "0")
        started.append(_start(folder, "Master", folder / "master.log", *here, "--port", "0"))
        found = _PORT.search(_wait_for(started[0], "Master", folder / "master.log"))
        assert found is not None
        master = f"spark://{ADDRESS}:{found[1]}"
        logs = [folder / f"worker-{number}.log" for number in range(workers)]
        for log in logs:
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(log.with_suffix("")))
            started.append(_start(folder, "Worker", log, *here, *size, master))
        for worker, log in zip(started[1:], logs, strict=True):
            _wait_for(worker, "Worker", log)
        yield LoopbackCluster(master, secret, folder)
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
        for process in started:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(folder: Path, kind: str, log: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start a part of the cluster."""
    runtime = find_runtime()
    java_home = _java_home(folder)
    environment = {
        **os.environ, "SPARK_HOME": str(runtime.jars.parent), "JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": ADDRESS,
        "SPARK_SCALA_VERSION": "2.13",  # as bin/load-spark-env.sh says
        # Of executors too, which live for seconds here.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }  # fmt: skip
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.nio", "sun.nio.ch")]
    command = [java_home / "bin" / "java", "-Xmx256m", "-cp", f"{runtime.jars}/*", *opened]
    command += [f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--properties-file", folder / _DEFAULTS, *arguments]
    with log.open("wb") as stream:
        return subprocess.Popen(command, stdout=stream, stderr=stream, env=environment)


def _wait_for(process: "subprocess.Popen[bytes]", kind: str, log: Path) -> str:
    """Wait until a part of the cluster says that it works; return its log."""
    deadline = time.monotonic() + _APPEAR_S
    while not _READY[kind].search(text := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{kind} did not come up: {text[-2000:]}")
        time.sleep(0.05)
    return text


def _java_home(folder: Path) -> Path:
    """Return a home of Java for executors: that of the wheel lacks a module that Spark names when it starts them."""
    program = folder / "java" / "bin" / "java"
    if not program.exists():
        program.parent.mkdir(parents=True)
        program.write_text(_WITHOUT_MODULE.format(java=find_runtime().java_home / "bin" / "java"))
        program.chmod(0o755)
    return program.parent.parent
