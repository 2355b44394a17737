"""Who is asking, and what they may read: a token, a node that signed, or neither.

Source: clauses EX-50 to EX-55 in ``spec/extensions/exchange.md`` and DAEMON-15 in ``spec/daemon.md``.
"""

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import ip_address
from itertools import pairwise
from typing import Final

from aiohttp import web
from yarl import URL

from odf_node.http.access_log import share_of
from odf_node.http.middleware import Handler
from odf_node.http.problems import ProblemError
from odf_node.http.served_node import LIVE, NODE
from odf_node.ports import access
from odf_node.records.access import PUSH_SCOPE, AccessToken, ReadGrants, TokenState, read_grants
from odf_protocol.did import DatasetId, DidKey
from odf_protocol.errors import MalformedError, RejectedError, UnsupportedError
from odf_protocol.http_signatures import CONTENT_DIGEST, decode_signature, signature_base
from odf_protocol.signatures import verify_bytes

MAX_SIGNATURE_AGE_S: Final = 300
"""How far the clocks of two nodes may be apart.  # guess: RFC 9421 section 7.2.2 asks for short"""
MAX_SPANS: Final = 64  # guess: gaps between requests count as leaps of the clock, of which there are few
MAX_NONCES: Final = 100_000  # guess: 300 signed requests a second, remembered as long as they can be repeated

_MAX_TOKEN_CHARACTERS: Final = 512  # guess: ours have below 100
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks.

    ``peer`` names them for limits: their token, or else their address. ``token`` is None for those who show none
    that is any good; ``lack`` says to those who need one what is wrong.
    """

    peer: str
    token: AccessToken | None
    reads: ReadGrants
    lack: str = "no token was shown"


_CALLER: Final = web.RequestKey("caller", Caller)


def secret_hash_of(token: str) -> bytes:
    """Return what is kept of a token: SHA3-256 of its whole text in UTF-8."""
    return hashlib.sha3_256(token.encode()).digest()


def node_hash_of(node: DidKey) -> bytes:
    """Return what is kept of a node that may do something; no token has it, as none begins with a zero byte (EX-51)."""
    return hashlib.sha3_256(b"\0node\0" + node.to_bytes()).digest()


@web.middleware
async def identify_caller(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Find out who asks, before anything is looked up for them.

    Raises:
        ProblemError: 401: a signature that does not hold; the answers are the same for every address.
    """
    caller = request[_CALLER] = await _identify(request)
    resource, agent = request.match_info.route.resource, request.headers.get("User-Agent", "")
    route = "" if resource is None else resource.canonical
    with access.calling(access.Requester(door="http", name=caller.peer, work=route, agent=agent)):
        return await handler(request)


def get_caller(request: web.Request) -> Caller:
    """Return who asks."""
    return request[_CALLER]


async def _identify(request: web.Request) -> Caller:
    anonymous = request.app[LIVE].configuration.access.anonymous
    anyone = Caller(f"address:{share_of(request.remote)}", None, read_grants((), anonymous=anonymous))
    if "Signature-Input" in request.headers:
        token = await _find_node_token(request)
    elif "Authorization" in request.headers:
        token = await _find_bearer_token(request)
        # Other programs show their token everywhere: one that is no good opens nothing, and closes nothing either.
        anyone = replace(anyone, lack="the token is unknown, expired or revoked")
    else:
        token = None
    if token is None:
        return anyone
    return Caller(f"token:{token.id}", token, read_grants(token.scopes, anonymous=anonymous))


async def _find_bearer_token(request: web.Request) -> AccessToken | None:
    secret = read_bearer(request.headers["Authorization"])
    return None if secret is None else await _find_valid(request, secret_hash_of(secret))


def read_bearer(authorization: str) -> str | None:
    """Return the token in a header ``Authorization``; None: there is none that could be one of ours."""
    scheme, _, secret = authorization.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not 0 < len(secret) <= _MAX_TOKEN_CHARACTERS or "\0" in secret:
        return None
    return secret


async def _find_node_token(request: web.Request) -> AccessToken | None:
    """Return what is granted to the node that signed; None: it is who it says, and nothing is granted to it."""
    try:
        node, nonce, created_s = _verify(request)
    except (MalformedError, UnsupportedError, RejectedError) as error:
        raise unauthorized(f"the signature of the request cannot be used: {error}") from error
    token = await _find_valid(request, node_hash_of(node))
    # Only nodes that may do something are remembered: others could fill the memory.
    now_s = request.app[NODE].clock.now().seconds
    if token is not None and not request.app[NONCES].add(f"{token.id} {nonce}", created_s, now_s):
        lack = "was used before, or may have been before this node came up: sign again, by a clock that is right"
        raise unauthorized(f"the signature of the request {lack}")
    return token


def _verify(request: web.Request) -> tuple[DidKey, str, int]:
    fields = [request.headers.getall(name, []) for name in ("Signature-Input", "Signature")]
    if [len(values) for values in fields] != [1, 1]:
        raise MalformedError("signed request", expected="one Signature-Input and one Signature", found="others")
    signed = decode_signature(fields[0][0], fields[1][0])
    node = DidKey.parse(signed.key_id)
    if request.method == "POST" and CONTENT_DIGEST not in signed.components:
        raise MalformedError("signed request", expected=f"{CONTENT_DIGEST} of what is posted", found="none")
    path, _, query = request.raw_path.partition("?")
    scheme, ours = _authorities_of(request)
    authority = _without_usual_port(request.headers.get("Host", ""), scheme)
    values = {
        "@method": request.method,
        "@authority": authority,
        "@path": path,
        "@query": f"?{query}",
    }
    digests = request.headers.getall(CONTENT_DIGEST, [])
    if len(digests) == 1:
        values[CONTENT_DIGEST] = digests[0]
    base = signature_base(values, signed.components, signed.parameters)
    verify_bytes(node.public_key, base, signed.signature)
    age_s = request.app[NODE].clock.now().seconds - signed.created_s
    if abs(age_s) > MAX_SIGNATURE_AGE_S:
        raise MalformedError("signed request", expected=f"at most {MAX_SIGNATURE_AGE_S} s old", found=f"{age_s} s")
    if authority not in ours:
        # Whoever was asked by this node could otherwise ask here in its name.
        found = f"{authority}: the operator of this node sets listen.public_url to where others reach it"
        raise MalformedError("signed request", where="@authority", expected=" or ".join(sorted(ours)), found=found)
    return node, signed.nonce, signed.created_s


def _authorities_of(request: web.Request) -> tuple[str, frozenset[str]]:
    """Return how this node is reached: the address that is set, else the one that was connected to."""
    public = request.app[LIVE].configuration.listen.public_url
    if public:
        url = URL(public)
        return url.scheme, frozenset({(url.host_port_subcomponent or "").lower()})
    assert request.transport is not None
    host, port = request.transport.get_extra_info("sockname")[:2]
    names = {"localhost", host} if ip_address(host).is_loopback else {host}
    spelled = (f"[{name}]" if ":" in name else name for name in names)
    return request.scheme, frozenset(_without_usual_port(f"{name}:{port}", request.scheme) for name in spelled)


def _without_usual_port(authority: str, scheme: str) -> str:
    return authority.lower().removesuffix(_USUAL_PORTS.get(scheme, ":80"))


async def _find_valid(request: web.Request, secret_hash: bytes) -> AccessToken | None:
    node = request.app[NODE]
    token = await asyncio.to_thread(node.store.find_token, secret_hash)
    return token if token is not None and token.state_at(node.clock.now()) is TokenState.VALID else None


def unauthorized(detail: str) -> ProblemError:
    """Make the answer to somebody who must show something, or something else."""
    return ProblemError(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})


class Nonces:
    """Words that were used, for as long as their signatures are young enough to be used again.

    Nothing that was forgotten is taken again, also where the clock is set back, there were too many words, or the node
    was started anew: of words that are gone, the times are kept at which their signatures were made, as spans. A clock
    that was far ahead leaves a span there, and what comes when it is right again is before it.
    """

    def __init__(self, since_s: int = 0) -> None:
        self._used: OrderedDict[str, int] = OrderedDict()
        self._forgotten: list[range] = [range(since_s)]
        """In ascending order, without overlaps."""

    def add(self, word: str, created_s: int, now_s: int) -> bool:
        """Note a word of a signature made at ``created_s``; False: it was used before, or may have been."""
        while self._used:
            oldest = next(iter(self._used))
            if len(self._used) < MAX_NONCES and now_s - self._used[oldest] <= 2 * MAX_SIGNATURE_AGE_S:
                break
            self._forget(self._used.pop(oldest))
        if word in self._used or any(created_s in span for span in self._forgotten):
            return False
        self._used[word] = created_s
        return True

    def _forget(self, created_s: int) -> None:
        """Put a time into the span beside it, or into one of its own; of too many the two closest become one."""
        spans = sorted((*self._forgotten, range(created_s, created_s + 1)), key=lambda span: span.start)
        gaps = [after.start - before.stop for before, after in pairwise(spans)]
        while gaps and (min(gaps) <= 2 * MAX_SIGNATURE_AGE_S or len(spans) > MAX_SPANS):
            place = gaps.index(min(gaps))
            joined = range(spans[place].start, max(spans[place].stop, spans[place + 1].stop))
            spans[place : place + 2] = [joined]
            gaps = [after.start - before.stop for before, after in pairwise(spans)]
        self._forgotten = spans


NONCES: Final = web.AppKey("nonces", Nonces)


def get_token(request: web.Request) -> AccessToken:
    """Return the token that came with the request, or what is granted to the node that signed it.

    Raises:
        ProblemError: 401: there is none.
    """
    caller = get_caller(request)
    if caller.token is None:
        raise unauthorized(caller.lack)
    return caller.token


def require_scope(token: AccessToken, dataset_id: DatasetId) -> None:
    """Check that the token allows pushes of the dataset.

    Raises:
        ProblemError: 403.
    """
    if not {PUSH_SCOPE, f"{PUSH_SCOPE}:{dataset_id}"}.intersection(token.scopes):
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", f"the token does not allow pushes of {dataset_id}")


def require_some_push(token: AccessToken) -> None:
    """Check that the token allows pushes at all, where whose push it is comes later (SMART-10).

    Raises:
        ProblemError: 403.
    """
    if not any(scope.partition(":")[0] == PUSH_SCOPE for scope in token.scopes):
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", "the token does not allow pushes")
