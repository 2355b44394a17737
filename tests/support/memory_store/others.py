"""Other nodes and what the operator settled: remotes, peers, tokens, audit, gossip, subscriptions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from odf_node.ports.access import AccessToken
from odf_node.ports.audit import AuditEntry
from odf_node.ports.datasets import Remote, RemoteDirection, Repository, Subscription
from odf_node.ports.errors import PeerKeyChangedError
from odf_node.ports.gossip import KeptItem
from odf_node.ports.peers import Peer
from odf_protocol.did import DatasetId
from odf_protocol.timestamp import Timestamp
from support.memory_store.tables import MemoryPort


class MemoryRemotes(MemoryPort):
    """``RemoteStore`` in memory."""

    def put_remote(self, remote: Remote) -> None:
        with self._tables.lock:
            remotes = self._tables.get(remote.dataset_id).remotes
            if remote not in remotes:
                remotes.append(remote)

    def delete_remote(self, remote: Remote) -> None:
        with self._tables.lock:
            kept = self._tables.get(remote.dataset_id)
            kept.remotes = [each for each in kept.remotes if each != remote]

    def list_remotes(self, dataset_id: DatasetId, direction: RemoteDirection) -> tuple[Remote, ...]:
        return tuple(each for each in self._tables.get(dataset_id).remotes if each.direction is direction)

    def put_repository(self, repository: Repository) -> None:
        self._tables.repositories[repository.name.lower()] = repository

    def find_repository(self, name: str) -> Repository | None:
        return self._tables.repositories.get(name.lower())

    def list_repositories(self) -> tuple[Repository, ...]:
        return tuple(each for _, each in sorted(self._tables.repositories.items()))

    def delete_repository(self, name: str) -> None:
        self._tables.repositories.pop(name.lower(), None)


class MemoryPeers(MemoryPort):
    """``PeerStore`` in memory."""

    def put_peer(self, peer: Peer) -> Peer:
        with self._tables.lock:
            known = self._tables.peers.get(peer.url, peer)
            if known.node_key not in {None, peer.node_key}:
                raise PeerKeyChangedError(peer.url, known.node_key, peer.node_key)
            keys = dict.fromkeys((*known.publisher_keys, *peer.publisher_keys))
            kept = replace(known, node_key=peer.node_key, publisher_keys=tuple(keys))
            self._tables.peers[peer.url] = kept
            return kept

    def find_peer(self, url: str) -> Peer | None:
        return self._tables.peers.get(url)

    def list_peers(self) -> tuple[Peer, ...]:
        return tuple(each for _, each in sorted(self._tables.peers.items()))

    def delete_peer(self, url: str) -> None:
        self._tables.peers.pop(url, None)
        self._tables.named_peers.discard(url)

    def name_peer(self, url: str, at: Timestamp) -> None:
        self._tables.peers.setdefault(url, Peer(url=url, node_key=None, first_seen=at))
        self._tables.named_peers.add(url)

    def list_named_peers(self) -> tuple[str, ...]:
        return tuple(sorted(self._tables.named_peers))

    def replace_peer_records(self, records: Iterable[bytes]) -> None:
        self._tables.peer_records = tuple(dict.fromkeys(records))

    def list_peer_records(self) -> tuple[bytes, ...]:
        return self._tables.peer_records


class MemoryTokens(MemoryPort):
    """``TokenStore`` in memory."""

    def put_token(self, token: AccessToken) -> None:
        with self._tables.lock:
            tokens = self._tables.tokens
            same = [each for each in tokens.values() if each.secret_hash == token.secret_hash]
            # Secrets are never used twice, but a node that was granted something before keeps its key.
            revoked = [each.id for each in same if each.revoked_at is not None]
            if len(same) > len(revoked) or (token.id in tokens and token.id not in revoked):
                raise ValueError(f"token {token.id} is known")
            for each in revoked:
                del tokens[each]
            tokens[token.id] = token

    def find_token(self, secret_hash: bytes) -> AccessToken | None:
        with self._tables.lock:
            return next((each for each in self._tables.tokens.values() if each.secret_hash == secret_hash), None)

    def list_tokens(self) -> tuple[AccessToken, ...]:
        return tuple(self._tables.tokens.values())

    def revoke_token(self, token_id: str, revoked_at: Timestamp) -> bool:
        with self._tables.lock:
            token = self._tables.tokens.get(token_id)
            if token is not None and token.revoked_at is None:
                self._tables.tokens[token_id] = replace(token, revoked_at=revoked_at)
            return token is not None


class MemoryAuditLog(MemoryPort):
    """``AuditLog`` in memory."""

    def append_audit(self, entry: AuditEntry) -> None:
        self._tables.audit.append(entry)

    def iter_audit(self, *, limit: int) -> Iterator[AuditEntry]:
        return iter(self._tables.audit[: -limit - 1 : -1])


class MemoryGossipItems(MemoryPort):
    """``GossipItems`` in memory."""

    def change_gossip_items(self, added: Iterable[KeptItem], removed: Iterable[bytes]) -> None:
        with self._tables.lock:
            for item in added:
                self._tables.gossip_items.setdefault(item.id, item)
            for id_ in removed:
                self._tables.gossip_items.pop(id_, None)

    def list_gossip_items(self) -> tuple[KeptItem, ...]:
        return tuple(self._tables.gossip_items.values())


class MemorySubscriptions(MemoryPort):
    """``SubscriptionStore`` in memory."""

    def put_subscription(self, subscription: Subscription) -> None:
        self._tables.subscriptions[subscription.dataset_id] = subscription

    def delete_subscription(self, dataset_id: DatasetId) -> bool:
        return self._tables.subscriptions.pop(dataset_id, None) is not None

    def list_subscriptions(self) -> tuple[Subscription, ...]:
        return tuple(sorted(self._tables.subscriptions.values(), key=lambda each: each.name))
