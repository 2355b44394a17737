"""The operator's policies, from ``policies.yaml`` in the home; read anew for each judgement, so that an edit counts."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from odf_node.records.errors import mapped_os_errors
from odf_protocol.accept_policies import NO_POLICIES, PolicySet
from odf_protocol.accept_policy_text import MAX_POLICY_BYTES, parse_policies
from odf_protocol.errors import MalformedError


def read_policies(path: Path, *, must_exist: bool = False) -> PolicySet:
    """Read a file of policies; without one, the built-in default is in force.

    A file that cannot be read or understood is an error, never the default: a mistyped rule must not open a door.

    Raises:
        MalformedError: It is not a file of policies; the message names line and column.
        FileNotFoundError: It is not there, and ``must_exist``.
        HomeReadOnlyError: This user may not read it.
    """
    with mapped_os_errors(path):
        if not must_exist and not os.path.lexists(path):
            return NO_POLICIES
        try:
            with path.open("rb") as file:
                content = file.read(4 * MAX_POLICY_BYTES + 1)
        except FileNotFoundError as error:
            if must_exist:
                raise
            if path.is_symlink():
                found = "a link that leads nowhere"
                raise MalformedError("policies", where=str(path), expected="a file", found=found) from error
            return NO_POLICIES
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError("policies", where=error.start, expected="UTF-8 text", found="other bytes") from error
    return parse_policies(text, source_name=path.name)


@dataclass(slots=True)
class WatchedPolicies:
    """The same file for somebody who looks every few seconds: read again when it has changed.

    For one thread at a time.
    """

    path: Path
    _seen: tuple[int, int, int] | None = None
    _policies: PolicySet = field(default=NO_POLICIES)

    def read(self) -> PolicySet:
        """Return what is in force; errors as ``read_policies``, each time until the file is fixed."""
        with mapped_os_errors(self.path):
            try:
                status = self.path.stat()
            except FileNotFoundError:
                return read_policies(self.path)
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen != self._seen:
            self._policies = read_policies(self.path)
            self._seen = seen
        return self._policies
