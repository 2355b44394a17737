"""Addresses: where datasets are pulled from and pushed to, and repositories by name."""

from typing import Protocol

from odf_node.ports.datasets import Remote, RemoteDirection, Repository
from odf_protocol.did import DatasetId


class RemoteStore(Protocol):
    """Remotes of datasets, and repositories that the user has named."""

    def put_remote(self, remote: Remote) -> None:
        """Remember an address; a known one changes nothing."""
        ...

    def delete_remote(self, remote: Remote) -> None:
        """Forget an address; forgetting an unknown one is no error."""
        ...

    def list_remotes(self, dataset_id: DatasetId, direction: RemoteDirection) -> tuple[Remote, ...]:
        """Return the addresses in the order they were added."""
        ...

    def put_repository(self, repository: Repository) -> None:
        """Keep a repository; one of this name (compared without case) is replaced."""
        ...

    def find_repository(self, name: str) -> Repository | None:
        """Return the repository of this name, compared without case, or None."""
        ...

    def list_repositories(self) -> tuple[Repository, ...]:
        """Return all repositories, by name."""
        ...

    def delete_repository(self, name: str) -> None:
        """Forget a repository; forgetting an unknown one is no error."""
        ...
