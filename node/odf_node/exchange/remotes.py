"""Repositories by name, and where datasets are pulled from and pushed to without being told (REPO-1 to REPO-5)."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from odf_node.errors import UnknownDatasetError, UsageError
from odf_node.records.datasets import ADDRESS_SCHEMES, DatasetRecord, Remote, RemoteDirection, Repository
from odf_node.store import MetadataStore
from odf_protocol.did import DatasetId
from odf_protocol.errors import UnsupportedError
from odf_protocol.names import DatasetUrl, RemoteAlias, RemoteId, RepoName, parse_any_ref


class UnknownRepositoryError(UnknownDatasetError):
    """No repository of this name is registered; the nearest name is offered."""


@dataclass(frozen=True, slots=True)
class Remotes:
    """The use case behind ``odf-node repo``, and the reading of references to datasets elsewhere."""

    store: MetadataStore

    # Repositories

    def add(self, name: str, url: str) -> Repository:
        """Register a repository.

        Raises:
            MalformedError: No name, or no URL.
            UsageError: The name is taken, or there is a password in the URL.
            UnsupportedError: A scheme that this node does not speak.
        """
        place = DatasetUrl(_without_secrets(url))
        repository = Repository(str(RepoName.parse(name)), str(place).rstrip("/"))
        if "+".join(place.schemes) not in ADDRESS_SCHEMES:
            raise UnsupportedError("address", found=repr(url), supported=", ".join(ADDRESS_SCHEMES))
        known = self.store.find_repository(repository.name)
        if known is not None:
            raise UsageError(f"the repository '{known.name}' is {known.url} already; delete it first")
        self.store.put_repository(repository)
        return repository

    def get(self, name: str) -> Repository:
        """Return a repository.

        Raises:
            UnknownRepositoryError: There is none of this name.
        """
        known = self.store.find_repository(name)
        if known is not None:
            return known
        near = difflib.get_close_matches(name, [item.name for item in self.store.list_repositories()], n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"'odf-node repo add {name} URL' makes it known"
        raise UnknownRepositoryError(f"there is no repository '{name}'; {hint}")

    def delete(self, name: str) -> None:
        """Forget a repository and every alias in it.

        Raises:
            UnknownRepositoryError: There is none of this name.
        """
        repository = self.get(name)
        prefix = f"{repository.name}/".lower()
        for record in self.store.list_datasets():
            for direction in RemoteDirection:
                for remote in self.store.list_remotes(record.id, direction):
                    if remote.url.lower().startswith(prefix):
                        self.store.delete_remote(remote)
        self.store.delete_repository(repository.name)

    # References

    def is_remote(self, text: str) -> bool:
        """Say whether a reference is to a dataset elsewhere: a URL, or one in a repository."""
        return "://" in text or (not text.startswith(DatasetId.scheme) and "/" in text)

    def resolve(self, text: str) -> str:
        """Find the address of a dataset elsewhere.

        Raises:
            UnknownRepositoryError: The repository is not known.
            MalformedError: No reference.
        """
        if "://" in text:
            return text  # who opens it says best what is wrong with it
        reference = parse_any_ref(text, is_repo=lambda name: self.store.find_repository(str(name)) is not None)
        match reference:
            case RemoteAlias():
                return f"{self.get(str(reference.repo)).url}/{reference.alias}"
            case RemoteId():
                return f"{self.get(str(reference.repo)).url}/{reference.id}"
            case _:
                # An account's dataset is no other one here, so what stands before the slash was meant as a repository.
                return self.get(text.partition("/")[0]).url

    # Aliases

    def add_alias(self, record: DatasetRecord, direction: RemoteDirection, alias: str) -> None:
        """Remember where a dataset is pulled from or pushed to; an alias in a repository follows the repository.

        Raises:
            UnknownRepositoryError, MalformedError: As ``resolve``.
            UsageError: There is a password in it.
        """
        self.resolve(_without_secrets(alias))
        self.store.put_remote(Remote(record.id, direction, alias))

    def delete_aliases(
        self, record: DatasetRecord, directions: Sequence[RemoteDirection], alias: str | None
    ) -> list[Remote]:
        """Forget an alias, or all of a dataset where ``alias`` is None.

        Raises:
            UnknownRepositoryError: There is no such alias.
        """
        found = [
            remote
            for direction in directions
            for remote in self.store.list_remotes(record.id, direction)
            if alias in {None, remote.url}
        ]
        if alias is not None and not found:
            raise UnknownRepositoryError(
                f"'{record.name}' has no alias {alias}; 'odf-node repo alias list {record.name}' shows them"
            )
        for remote in found:
            self.store.delete_remote(remote)
        return found

    def list_addresses(self, record: DatasetRecord, direction: RemoteDirection) -> list[str]:
        """Return the addresses that a dataset is pulled from or pushed to: its aliases, then where it came from."""
        found = [self.resolve(remote.url) for remote in self.store.list_remotes(record.id, direction)]
        if direction is RemoteDirection.PULL and record.origin_url and "://" in record.origin_url:
            found.append(record.origin_url)
        return list(dict.fromkeys(found))


def _without_secrets(address: str) -> str:
    """Keep passwords out of what is kept, listed and told (HOME-23).

    Raises:
        UsageError: The address has one in it.
    """
    if "@" in urlsplit(address).netloc:
        raise UsageError(
            "an address that is kept has no user and password in it; 'odf-node login' keeps a token, and "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY open buckets"
        )
    return address
