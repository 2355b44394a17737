"""Images of this machine's shell with a few programs and their libraries, as a container tool would have made them."""

import io
import json
import re
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from support.engine_archives import oci_archive, program, tar_of

PROGRAMS = ("sh", "cat", "head", "ln", "mkfifo", "mkdir", "sleep", "touch", "env", "id", "rm", "chmod", "yes")


@cache
def layer_of(*names: str) -> bytes:
    """A layer with programs of this machine, each at ``/bin``, and what they need of libraries, at its place."""
    files: dict[str, bytes] = {}
    for name in names:
        found = Path(shutil.which(name, path="/bin:/usr/bin") or "").resolve(strict=True)
        files[f"bin/{name}"] = found.read_bytes()
        linked = subprocess.run(["ldd", str(found)], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", linked):
            files[library.removeprefix("/")] = Path(library).read_bytes()
    return tar_of(program(path, content) for path, content in files.items())


def shell_image(*more: bytes, script: str = "echo none", **start: Any) -> bytes:
    """An image that runs ``/fetch`` by the shell, unless ``start`` (the configuration's) says otherwise.

    Args:
        more: Layers on top.
        script: What stands in ``/fetch``.
        start: ``Entrypoint`` and so on.
    """
    fetch = tar_of([program("fetch", f"#!/bin/sh\n{script}\n".encode())])
    return oci_archive([layer_of(*PROGRAMS), fetch, *more], {"Entrypoint": ["/fetch"], **start}, packing="")


def manifest_digest(archive: bytes) -> str:
    """The digest by which a registry would call the image of an archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        return str(json.load(index)["manifests"][0]["digest"])
