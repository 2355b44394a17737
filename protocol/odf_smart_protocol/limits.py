"""What a conversation may cost (SMART-2)."""

from typing import Final

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""One message that we send is one frame. Source: the default of the library that the other implementation uses."""
MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""One message that we read. Source: as above, for whole messages."""
MAX_ASKING_MESSAGE_BYTES: Final = 32 * 1024 * 1024
"""One message of somebody who only reads.  # guess: 100,000 objects take some 15 MB"""
MAX_SMALL_MESSAGE_BYTES: Final = 1024 * 1024
"""Messages without blocks.  # guess: a thousand objects with their URLs are below"""
MAX_PAYLOAD_BYTES: Final = MAX_FRAME_BYTES // 4 - 64 * 1024
"""Compressed blocks that we put into a message: up to four characters for a byte, and one frame holds it."""
MAX_READ_PAYLOAD_BYTES: Final = MAX_MESSAGE_BYTES // 2
"""Compressed blocks that we read from one: a byte has two characters at least."""
MAX_BATCH_BLOCKS: Final = 20_000  # guess: seconds of work; more come in the next conversation
MAX_BATCH_RAW_BYTES: Final = 32 * 1024 * 1024
"""Blocks of a batch that we send, before compression."""
MAX_READ_BATCH_BLOCKS: Final = 1_000_000
MAX_READ_BATCH_RAW_BYTES: Final = 1024 * 1024 * 1024
"""Blocks of a batch that we read, after decompression: they are read one by one."""
MAX_OBJECTS_PER_MESSAGE: Final = 1_000
MAX_READ_OBJECTS_PER_MESSAGE: Final = 100_000
"""Others ask for all objects in one message."""
MAX_URL_CHARACTERS: Final = 8_192  # guess: pre-signed URLs have some 1,500
MAX_URL_HEADERS: Final = 16  # guess
MAX_HEADER_CHARACTERS: Final = 8_192
MAX_TEXT_CHARACTERS: Final = 4_096

ANSWER_S: Final = 120.0
"""How long an answer may take.  # guess: the other implementation walks its chain for minutes when it is long"""
IDLE_S: Final = 15 * 60.0
"""How long a server waits for the next message: objects travel meanwhile."""
VERDICT_S: Final = 60 * 60.0
"""How long a pusher waits for the end: the receiver may re-execute everything before it accepts."""
