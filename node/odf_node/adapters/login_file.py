"""Access tokens for other servers in one file of the home, which nobody else may read (HOME-23)."""

import json
import secrets
from collections.abc import Mapping
from typing import Any, Final

from odf_node.adapters.key_files import read_private, write_private
from odf_node.home_folder import HomeFolder, fsync_folder
from odf_node.records.errors import HomeCorruptError, mapped_os_errors
from odf_node.store.writers_lock import shared_lease

_MAX_FILE_BYTES: Final = 1024 * 1024


class LoginFile:
    """``LoginStore`` in ``logins.json``: replaced as a whole, so that readers see the old file or the new one."""

    def __init__(self, home: HomeFolder) -> None:
        self._home = home

    def find(self, origin: str) -> str | None:
        return self.read().get(origin)

    def read(self) -> Mapping[str, str]:
        path = self._home.logins
        try:
            text = read_private(path, _MAX_FILE_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise HomeCorruptError(path, f"the tokens cannot be read: {error.strerror}") from error
        try:
            found: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise HomeCorruptError(path, "expected tokens by server in JSON, found something else") from error
        if not isinstance(found, dict) or not all(isinstance(token, str) for token in found.values()):
            raise HomeCorruptError(path, "expected tokens by server in JSON, found something else")
        return found

    def put(self, origin: str, token: str) -> None:
        self._home.create()
        self._replace({**self.read(), origin: token})

    def drop(self, origin: str) -> bool:
        kept = dict(self.read())
        if kept.pop(origin, None) is None:
            return False
        self._replace(kept)
        return True

    def _replace(self, tokens: Mapping[str, str]) -> None:
        path = self._home.logins
        # The lease keeps a sweep from taking the draft, and a sweep takes what a crash leaves of it.
        with shared_lease(self._home), mapped_os_errors(path):
            draft = self._home.staging / f"logins-{secrets.token_hex(8)}"
            try:
                write_private(draft, json.dumps(tokens, indent=2, sort_keys=True).encode())
                draft.replace(path)
                fsync_folder(path.parent)
            finally:
                draft.unlink(missing_ok=True)
