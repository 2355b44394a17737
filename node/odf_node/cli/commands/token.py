"""``odf-node token``: manage the tokens that allow others to push and to read."""

import argparse
from typing import Final

from odf_node.cli.context import CommandContext, parse_time
from odf_node.cli.parsing import add_actions, add_output_format
from odf_protocol.did import DidKey

TOPIC: Final = "exchange with others"
HELP: Final = "manage the tokens that allow others to push and to read"
EXAMPLES: Final = """\
token create newsroom --dataset sales
token create auditor --read sales --expires 2026-12-31
token list
token revoke 5f3a9c21
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = add_actions(
        parser,
        {
            "create": "make a token and print it, once",
            "list": "list tokens, without their secrets",
            "revoke": "end a token",
        },
    )
    create = actions["create"]
    create.add_argument("label", metavar="LABEL", help="who will use it; for your own list")
    create.add_argument(
        "--dataset",
        action="append",
        metavar="DID|NAME",
        default=[],
        help="allow pushing this dataset, or sending rows into it where this node writes it (may be repeated; default: "
        "pushing any that this node does not write itself)",
    )
    create.add_argument(
        "--read",
        action="append",
        metavar="DID|NAME",
        default=[],
        help="allow reading this dataset, published or not (may be repeated); pushing then needs --dataset",
    )
    create.add_argument("--read-all", action="store_true", help="allow reading every dataset of this node")
    create.add_argument(
        "--inspect",
        action="store_true",
        help="allow looking at everything that you see on the web pages: every dataset, rejections, quarantine, peers",
    )
    create.add_argument(
        "--node", metavar="DID", help="no secret: requests that the node did:key:... signs stand for the token"
    )
    create.add_argument(
        "--may-replace",
        action="store_true",
        help="let forced pushes replace an unsigned history; the old one is kept",
    )
    create.add_argument("--expires", metavar="T", help="the token ends then")
    add_output_format(create, "text", "json")
    add_output_format(actions["list"], "table", "json")
    actions["revoke"].add_argument("token_id", metavar="ID", help="as 'odf-node token list' shows it")


def run(context: CommandContext, arguments: argparse.Namespace) -> int:
    """Do it; a running node follows at its next request."""
    match arguments.action:
        case "create":
            _create(context, arguments)
        case "list":
            _list(context, as_json=arguments.output_format == "json")
        case _:
            _revoke(context, arguments.token_id)
    return 0


def _create(context: CommandContext, arguments: argparse.Namespace) -> None:
    console = context.console
    token, secret = context.node.tokens.create(
        arguments.label,
        datasets=arguments.dataset,
        expires_at=parse_time(arguments.expires, option="--expires") if arguments.expires else None,
        reads=arguments.read,
        reads_all=arguments.read_all,
        node=DidKey.parse(arguments.node) if arguments.node else None,
        may_replace=arguments.may_replace,
        inspects=arguments.inspect,
    )
    context.node.record("token create", token.id, token.label)
    if arguments.output_format == "json":
        shown_secret = {"token": secret} if secret else {"node": arguments.node}
        console.json({"id": token.id, "label": token.label, "scopes": token.scopes} | shown_secret)
    elif secret:
        console.note(f"token {token.id} for {token.label}; it is shown only now, keep it secret:")
        console.text(secret)
    else:
        console.note(f"token {token.id} for {token.label}: what {arguments.node} signs stands for it")


def _list(context: CommandContext, *, as_json: bool) -> None:
    now = context.node.now()
    rows = [
        {
            "id": token.id,
            "label": token.label,
            "scopes": list(token.scopes),
            "created": str(token.created_at),
            "expires": str(token.expires_at) if token.expires_at else None,
            "state": token.state_at(now).value,
        }
        for token in context.node.tokens.list_tokens()
    ]
    names = {str(each.id): each.name for each in context.node.store.list_datasets()}

    def describe(scope: str) -> str:
        what, _, dataset = scope.partition(":")
        return f"{what} {names.get(dataset, dataset)}".rstrip()

    shown = [
        row | {"scopes": ", ".join(map(describe, row["scopes"] or ())), "expires": row["expires"] or "never"}
        for row in rows
    ]
    columns = {
        "id": "ID",
        "label": "FOR",
        "scopes": "ALLOWS",
        "created": "CREATED",
        "expires": "EXPIRES",
        "state": "STATE",
    }
    empty = "there are no tokens: no other node can push, or read what is not published"
    context.console.result(rows, columns, as_json=as_json, shown=shown, empty=empty)


def _revoke(context: CommandContext, token_id: str) -> None:
    context.node.tokens.revoke(token_id)
    context.node.record("token revoke", token_id)
    context.console.text(f"token {token_id} is revoked")
