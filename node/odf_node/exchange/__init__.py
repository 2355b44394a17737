"""Datasets between nodes: pull, push, subscriptions, repositories, and the tokens that open other servers."""

from typing import TYPE_CHECKING

from odf_protocol.late import late_modules

if TYPE_CHECKING:
    from odf_node.exchange import bringing as bringing
    from odf_node.exchange import following as following
    from odf_node.exchange import logins as logins
    from odf_node.exchange import peering as peering
    from odf_node.exchange import pull_planning as pull_planning
    from odf_node.exchange import pulling as pulling
    from odf_node.exchange import pushing as pushing
    from odf_node.exchange import receiving as receiving
    from odf_node.exchange import remotes as remotes
    from odf_node.exchange import taking as taking
    from odf_node.exchange import tokens as tokens
else:
    __getattr__ = late_modules(__name__)
