"""Connecting to the Java that ``launch`` started, and starting Spark in it.

Source: clauses ENGINE-9 and CLUSTER-5 in ``spec/extensions``.
"""

import os
import struct
import subprocess
import time
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from odf_spark.java_side import connect_to_java
from odf_spark.launch import CONNECTION, SECRET


def connect_spark(java: "subprocess.Popen[bytes]") -> SparkSession:
    """Return the root session of a Java that was started, as soon as it is up.

    Raises:
        RuntimeError: Java ended before Spark was up.
    """
    connect_java(java)
    return start_spark()


def connect_java(java: "subprocess.Popen[bytes]") -> None:
    """Wait until a Java that was started can be asked; Spark is not up then.

    Raises:
        RuntimeError: Java ended before.
    """
    connection = Path(CONNECTION)
    while not connection.exists():
        if java.poll() is not None:
            raise RuntimeError(f"Java ended with code {java.returncode}")
        time.sleep(0.005)
    raw = connection.read_bytes()
    port, length = struct.unpack("!ii", raw[:8])
    os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=raw[8 : 8 + length].decode())
    connection.unlink()
    connect_to_java()
    if (secret := Path(SECRET)).exists():
        # Not on the command line of Java, which everybody on the machine can read.
        SparkContext.setSystemProperty("spark.authenticate.secret", secret.read_text().strip())


def start_spark() -> SparkSession:
    """Start Spark in the Java that is connected, and return its root session."""
    SparkContext.getOrCreate()
    return SparkSession.builder.getOrCreate()
