"""What a server of the existing network says about access tokens (SMART-12)."""

import json
from http import HTTPStatus
from typing import Any

from yarl import URL

from odf_node.adapters.http_client import ClientSettings, HttpClient
from odf_node.adapters.http_failures import error_of_status
from odf_protocol.errors import MalformedError


async def validate_token(origin: str, token: str) -> bool:
    """Ask whether a token is good; servers that cannot say it are believed to take it.

    Raises:
        PeerForbidsError: It is not.
        PeerUnavailableError: Nobody answers.
    """
    url = URL(origin) / "platform/token/validate"
    async with HttpClient(ClientSettings(token=token)) as client:
        answer = await client.ask("GET", url)
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        raise error_of_status(origin, answer.status, "account", answer.body, answer.content_type)
    return answer.status == HTTPStatus.OK


async def ask_for_token(origin: str, user: str, password: str) -> str:
    """Get a token for a user's password.

    Raises:
        PeerForbidsError: They do not belong together.
        MalformedError: The server gives none.
        PeerUnavailableError: Nobody answers.
    """
    url = URL(origin) / "platform/login"
    credentials = json.dumps({"login": user, "password": password})
    body = json.dumps({"loginMethod": "password", "loginCredentialsJson": credentials}).encode()
    async with HttpClient(ClientSettings()) as client:
        answer = await client.ask("POST", url, data=body, headers={"Content-Type": "application/json"})
    if answer.status != HTTPStatus.OK:
        raise error_of_status(str(url), answer.status, "login with a password", answer.body, answer.content_type)
    try:
        found: Any = json.loads(answer.body)
        token = found["accessToken"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedError(
            "answer", where=str(url), expected="an access token", found=type(error).__name__
        ) from error
    if not isinstance(token, str):
        raise MalformedError("answer", where=str(url), expected="an access token", found=type(token).__name__)
    return token
