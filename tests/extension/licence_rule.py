"""Terms of use have an address that cannot be changed on its way. One file of an external package: a chain rule."""

from odf_protocol.chain.rule import Breach, event_rule
from odf_protocol.chain.state import ChainState
from odf_protocol.events import SetLicense


@event_rule("HOUSE-1", SetLicense, odf=None)
def licence_has_a_safe_address(_state: ChainState, event: SetLicense) -> Breach | None:
    """Reject a licence whose page is not at ``https://``."""
    is_safe = event.website_url.startswith("https://")
    return None if is_safe else Breach("an address that begins with https://", event.website_url)
