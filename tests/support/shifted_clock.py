"""A clock that is twenty years off, for programs that are started with this library preloaded.

The library is put together here, byte by byte, since a machine with tests need not have a compiler: three functions of
the C library's, each the system call of its name with the seconds moved. For x86-64 only.

Source: System V ABI "AMD64", chapters 3 and 5; ELF-64 object file format.
"""

import platform
import struct
from pathlib import Path

SHIFT_S = 20 * 365 * 24 * 3600

_SHIFT = struct.pack("<i", SHIFT_S)
_FUNCTIONS = {
    # mov eax, 228; syscall; test eax, eax; jne failed; test edi, edi; je move; cmp edi, 5; jne end
    # move: sub qword [rsi], SHIFT; end: ret; failed: or eax, -1; ret
    "clock_gettime": bytes.fromhex("b8e4000000 0f05 85c0 7511 85ff 7405 83ff05 7507 48812e") + _SHIFT
    + bytes.fromhex("c3 83c8ff c3"),
    # mov eax, 96; xor esi, esi; syscall; test eax, eax; jne end; sub qword [rdi], SHIFT; end: ret
    "gettimeofday": bytes.fromhex("b860000000 31f6 0f05 85c0 7507 48812f") + _SHIFT + bytes.fromhex("c3"),
    # mov rdx, rdi; mov eax, 201; xor edi, edi; syscall; sub rax, SHIFT; test rdx, rdx; je end; mov [rdx], rax; end: ret
    "time": bytes.fromhex("4889fa b8c9000000 31ff 0f05 482d") + _SHIFT + bytes.fromhex("4885d2 7403 488902 c3"),
}  # fmt: skip
_PAGE = 4096
_READ, _WRITE, _EXECUTE = 4, 2, 1


def write_shifted_clock(path: Path) -> bool:
    """Write the library; false where it would not run on this machine."""
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        return False
    header_bytes = 64 + 4 * 56
    code, places = b"", {}
    for name, instructions in _FUNCTIONS.items():
        places[name] = header_bytes + len(code)
        code += instructions.ljust(64, b"\xcc")
    names = b"\0" + b"".join(name.encode() + b"\0" for name in _FUNCTIONS)
    symbols = bytes(24)
    for name, place in places.items():
        # A global function of some section.
        symbols += struct.pack("<IBBHQQ", names.index(name.encode() + b"\0"), 0x12, 0, 1, place, len(_FUNCTIONS[name]))
    count = len(places) + 1
    table = struct.pack(f"<{3 + count}I", 1, count, 1, 0, *range(2, count), 0)  # one bucket: a chain of all
    symbols_at = header_bytes + len(code)
    table_at = symbols_at + len(symbols)
    names_at = table_at + len(table)
    text = (code + symbols + table + names).ljust(_PAGE - header_bytes, b"\0")
    # DT_HASH, DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_SYMENT, DT_NULL
    found = [(4, table_at), (6, symbols_at), (5, names_at), (10, len(names)), (11, 24), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in found)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 0, 0, 0
    )  # fmt: skip
    segments = [
        (1, _READ | _EXECUTE, 0, _PAGE, _PAGE),  # PT_LOAD
        (1, _READ | _WRITE, _PAGE, len(dynamic), _PAGE),
        (2, _READ | _WRITE, _PAGE, len(dynamic), 8),  # PT_DYNAMIC
        (0x6474E551, _READ | _WRITE, 0, 0, 16),  # PT_GNU_STACK: not executable
    ]
    for kind, flags, place, size_bytes, alignment in segments:
        header += struct.pack("<IIQQQQQQ", kind, flags, place, place, place, size_bytes, size_bytes, alignment)
    path.write_bytes(header + text + dynamic)
    return True
