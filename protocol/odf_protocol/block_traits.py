"""What a block is good for, as a few bits: enough to tell, without decoding it, whether somebody has to read it.

Source: not part of any protocol; follows from the event of a block.
"""

from typing import Final

from odf_protocol.events import AddData, Event, ExecuteTransform, SetAttachments, SetInfo, SetLicense

DEFINITION: Final = 1
"""Not about data."""
DATA: Final = 2
"""AddData or ExecuteTransform."""
ROWS: Final = 4
"""Adds rows: names a slice."""
WATERMARK: Final = 8
"""States a watermark."""
CHECKPOINT: Final = 16
"""Names a new checkpoint."""
STEP: Final = 32
"""ExecuteTransform."""
INFO: Final = 64
"""SetInfo."""
LICENSE: Final = 128
"""SetLicense."""
ATTACHMENTS: Final = INFO | LICENSE
"""SetAttachments: neither of both; eight bits are all that is kept of a block."""
ABOUT: Final = INFO | LICENSE
"""Which of these three."""

_ABOUT: Final = {SetInfo: INFO, SetLicense: LICENSE, SetAttachments: ATTACHMENTS}


def traits_of(event: Event) -> int:
    """Return the traits of a block with this event, or-ed together; plain numbers, as they are asked for very often."""
    if not isinstance(event, AddData | ExecuteTransform):
        return DEFINITION | _ABOUT.get(type(event), 0)
    traits = DATA
    if event.new_data is not None:
        traits |= ROWS
    if event.new_watermark is not None:
        traits |= WATERMARK
    if event.new_checkpoint is not None:
        traits |= CHECKPOINT
    if isinstance(event, ExecuteTransform):
        traits |= STEP
    return traits
