"""The program of ``keccak``, compiled into memory for this machine, and the records of messages that it works on."""

import ctypes
import mmap
from collections.abc import Sequence
from typing import Final, Self

import llvmlite.binding as llvm

from odf_node.sha3.keccak import ADDRESS_WORD, FUNCTION_NAME, LEFT_WORD, RATE_BYTES, RECORD_WORDS, write_program

LANES: Final = 4
"""Measured: eight are no faster, also where vectors are wide enough for them."""

_BRIEF_BLOCKS: Final = 2048 // RATE_BYTES
"""Up to here the interpreter is kept, as giving it to another thread may take longer. Source: hashlib.h of CPython."""

_OPTIMIZATION: Final = 2  # LLVM's own default
_CODE: Final = mmap.PROT_READ | mmap.PROT_EXEC

_Record: Final = ctypes.c_uint64 * RECORD_WORDS


class Message:
    """The record of a message: its state, and where the bytes are that are to be taken into it."""

    __slots__ = ("_words", "address")

    def __init__(self) -> None:
        self._words = _Record()
        self.address = ctypes.addressof(self._words)

    @property
    def blocks_left(self) -> int:
        """How many blocks of what was pointed to are not in the state yet."""
        return self._words[LEFT_WORD]

    def point_to(self, data_address: int, blocks: int) -> None:
        """Say where the next blocks are; the bytes there must stay as they are while programs work on this record."""
        self._words[ADDRESS_WORD], self._words[LEFT_WORD] = data_address, blocks

    def copy(self) -> "Message":
        """Return another record of the same state."""
        other = Message()
        ctypes.memmove(other.address, self.address, ctypes.sizeof(self._words))
        return other

    def state_bytes(self, count: int) -> bytes:
        """Return the first bytes of the state."""
        return bytes(self._words)[:count]


class Program:
    """A program that takes blocks into the states of up to ``lanes`` messages."""

    def __init__(self, lanes: int) -> None:
        """Compile it.

        Raises:
            RuntimeError: LLVM does not know this machine, or not the language of the program.
        """
        self.lanes = lanes
        module = llvm.parse_assembly(write_program(lanes))
        module.verify()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=_OPTIMIZATION,
            jit=True,
        )
        self._owner = llvm.create_mcjit_compiler(module, machine)  # of the code: it goes when this goes
        self._owner.finalize_object()
        address = self._owner.get_function_address(FUNCTION_NAME)
        self._call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)(address)
        self._call_briefly = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)(address)
        self._addresses = ctypes.c_uint64 * lanes

    def absorb(self, messages: Sequence[Message], blocks: int) -> None:
        """Take ``blocks`` blocks of each of 1 to ``lanes`` messages, which have as many left, into its state."""
        addresses = [message.address for message in messages]
        unused = [addresses[0]] * (self.lanes - len(addresses))
        call = self._call_briefly if blocks <= _BRIEF_BLOCKS else self._call
        call(self._addresses(*addresses, *unused), blocks)


class Programs:
    """A program for one message and one for several."""

    def __init__(self, one: Program, several: Program) -> None:
        """Use these, which may be the same."""
        self._one = one
        self._several = several
        self.lanes = several.lanes

    @classmethod
    def find(cls) -> Self | None:
        """Compile the programs for this machine; None where they were not measured or would not run.

        Raises:
            RuntimeError: As for ``Program``.
        """
        features = llvm.get_host_cpu_features()
        if not (features.get("avx2") or features.get("avx512vl")) or not may_run_new_code():
            return None
        several = Program(LANES)
        # AVX-512 has rotations and functions of three bits for vectors, which pay for one message too: measured are
        # 560 MB/s, and 443 by a program without vectors. Four messages: 2,250 MB/s, 1,320 where there is AVX2 only.
        return cls(several if features.get("avx512vl") else Program(1), several)

    def absorb(self, messages: Sequence[Message], blocks: int) -> None:
        """See ``Program``, with whichever is faster for so many messages."""
        (self._one if len(messages) == 1 else self._several).absorb(messages, blocks)


def may_run_new_code() -> bool:
    """Tell whether memory of this process that was written may become code: LLVM does not notice where it may not.

    Services of systemd with ``MemoryDenyWriteExecute`` and some policies of SELinux forbid it.
    """
    with mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as page:
        start = ctypes.c_char.from_buffer(page)
        address = ctypes.c_void_p(ctypes.addressof(start))
        del start  # or the page could not be closed
        refused = ctypes.CDLL(None).mprotect(address, ctypes.c_size_t(mmap.PAGESIZE), _CODE)
    return not refused
