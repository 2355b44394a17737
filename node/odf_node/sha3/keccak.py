"""Keccak-f[1600], absorbing blocks of several messages at once: written as a program for LLVM.

Each lane of a vector holds the same word of another message's state, so that one instruction works for all of them.
What is written here once is compiled for the machine at hand by ``compiled``.

Source: FIPS 202, sections 3.2 (the step mappings) and 4 (the sponge); SHA3-256: section 6.1.
"""

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

WORDS: Final = 25
"""64-bit words of a state, word (x, y) at ``x + 5 * y``. Source: FIPS 202, section 3.1.2."""
RATE_BYTES: Final = 136
"""Bytes of a block of SHA3-256. Source: FIPS 202, table 3."""
ADDRESS_WORD: Final = WORDS
"""Word of a message's record that holds where its next block is; before it comes the state."""
LEFT_WORD: Final = ADDRESS_WORD + 1
"""Word of a record that counts the blocks that are left."""
RECORD_WORDS: Final = LEFT_WORD + 1
FUNCTION_NAME: Final = "absorb"

_WORD_BYTES: Final = 8
_ROUNDS: Final = 24
"""Source: FIPS 202, sections 3.3 and 3.4: 12 + 2 * 6."""
_WORD: Final = ir.IntType(64)
_POINTER: Final = ir.PointerType()


def write_program(lanes: int) -> str:
    """Write ``absorb(records, blocks)``: take ``blocks`` blocks of each of ``lanes`` messages into its state.

    ``records`` points to the addresses of ``lanes`` records of ``RECORD_WORDS`` words. Each record's address and count
    are moved on with its state. One record may stand several times: it is taken in once. The words are read in the
    machine's byte order, which must be that of FIPS 202: the lowest byte first.

    Args:
        lanes: A power of two, 1 or more.

    Returns:
        The program in LLVM's language.
    """
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER, _WORD]), FUNCTION_NAME)
    records, blocks = function.args
    start, every_block, every_round, end_of_block, end, done = (
        function.append_basic_block(name) for name in ("start", "block", "round", "end_of_block", "end", "done")
    )
    build = _Lanes(module, lanes)

    build.position_at_end(start)
    addresses = [build.load(build.word_at(records, lane, _POINTER), typ=_POINTER) for lane in range(lanes)]
    messages = [build.load(build.word_at(each, ADDRESS_WORD), typ=_WORD) for each in addresses]
    lefts = [build.load(build.word_at(each, LEFT_WORD), typ=_WORD) for each in addresses]
    first = [build.gather(addresses, word) for word in range(WORDS)]
    build.cbranch(build.icmp_unsigned("==", blocks, _WORD(0)), done, every_block)

    build.position_at_end(every_block)
    number = build.phi(_WORD)
    states = [build.phi(build.vector) for _ in range(WORDS)]
    offset = build.mul(number, _WORD(RATE_BYTES))
    places = [build.inttoptr(build.add(message, offset), _POINTER) for message in messages]
    rate_words = RATE_BYTES // _WORD_BYTES
    taken = [build.xor(state, build.gather(places, word)) for word, state in enumerate(states[:rate_words])]
    taken += states[rate_words:]
    build.branch(every_round)

    build.position_at_end(every_round)
    turn = build.phi(_WORD)
    before = [build.phi(build.vector) for _ in range(WORDS)]
    after = build.permute(before, build.round_constant(turn))
    next_turn = build.add(turn, _WORD(1))
    build.cbranch(build.icmp_unsigned("==", next_turn, _WORD(_ROUNDS)), end_of_block, every_round)

    build.position_at_end(end_of_block)
    next_number = build.add(number, _WORD(1))
    build.cbranch(build.icmp_unsigned("==", next_number, blocks), end, every_block)

    build.position_at_end(end)
    build.scatter(addresses, after)
    read_bytes = build.mul(blocks, _WORD(RATE_BYTES))
    for address, message, left in zip(addresses, messages, lefts, strict=True):
        build.store(build.add(message, read_bytes), build.word_at(address, ADDRESS_WORD))
        build.store(build.sub(left, blocks), build.word_at(address, LEFT_WORD))
    build.branch(done)

    build.position_at_end(done)
    build.ret_void()

    _join(number, (_WORD(0), start), (next_number, end_of_block))
    _join(turn, (_WORD(0), every_block), (next_turn, every_round))
    for word in range(WORDS):
        _join(states[word], (first[word], start), (after[word], end_of_block))
        _join(before[word], (taken[word], every_block), (after[word], every_round))
    return str(module)


class _Lanes(ir.IRBuilder):  # type: ignore[misc] # without types
    """Writes instructions on vectors with one lane for each message."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        super().__init__()
        self.lanes = lanes
        self.vector = ir.VectorType(_WORD, lanes)
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        self._rotate = ir.Function(module, kind, f"llvm.fshl.v{lanes}i64")
        table = ir.ArrayType(_WORD, _ROUNDS)
        self._constants = ir.GlobalVariable(module, table, "round_constants")
        self._constants.initializer = table(round_constants())
        self._constants.global_constant = True

    def word_at(self, address: ir.Value, word: int, kind: ir.Type = _WORD) -> ir.Value:
        """Point to a word, by its number, of what begins at an address."""
        return self.gep(address, [_WORD(word)], source_etype=kind)

    def gather(self, addresses: Sequence[ir.Value], word: int) -> ir.Value:
        """Load one word of each message."""
        value = self.vector(ir.Undefined)
        for lane, address in enumerate(addresses):
            loaded = self.load(self.word_at(address, word), align=1, typ=_WORD)
            value = self.insert_element(value, loaded, ir.IntType(32)(lane))
        return value

    def scatter(self, addresses: Sequence[ir.Value], state: Sequence[ir.Value]) -> None:
        """Store a state of each message."""
        for lane, address in enumerate(addresses):
            for word, value in enumerate(state):
                self.store(self.extract_element(value, ir.IntType(32)(lane)), self.word_at(address, word))

    def round_constant(self, turn: ir.Value) -> ir.Value:
        """Load the constant of a round into every lane."""
        place = self.gep(self._constants, [_WORD(0), turn], source_etype=self._constants.value_type)
        one = self.insert_element(self.vector(ir.Undefined), self.load(place, typ=_WORD), ir.IntType(32)(0))
        from_first = ir.VectorType(ir.IntType(32), self.lanes)([0] * self.lanes)
        return self.shuffle_vector(one, self.vector(ir.Undefined), from_first)

    def rotate(self, value: ir.Value, count: int) -> ir.Value:
        """Turn every lane left by ``count`` bits, 0 to 63."""
        return self.call(self._rotate, [value, value, self.vector([count] * self.lanes)]) if count else value

    def permute(self, state: Sequence[ir.Value], constant: ir.Value) -> list[ir.Value]:
        """Apply one round: theta, rho and pi, chi, iota. Source: FIPS 202, section 3.2."""
        columns = [self._parity(state[x::5]) for x in range(5)]
        effects = [self.xor(columns[x - 1], self.rotate(columns[(x + 1) % 5], 1)) for x in range(5)]
        moved = list(state)
        for (x, y), count in rotations().items():
            moved[y + 5 * ((2 * x + 3 * y) % 5)] = self.rotate(self.xor(state[x + 5 * y], effects[x]), count)
        after = []
        for y in range(0, WORDS, 5):
            row = moved[y : y + 5]
            after += [self.xor(row[x], self.and_(self.not_(row[(x + 1) % 5]), row[(x + 2) % 5])) for x in range(5)]
        after[0] = self.xor(after[0], constant)
        return after

    def _parity(self, words: Sequence[ir.Value]) -> ir.Value:
        result = words[0]
        for word in words[1:]:
            result = self.xor(result, word)
        return result


def rotations() -> dict[tuple[int, int], int]:
    """Return by how many bits each word turns left. Source: FIPS 202, algorithm 2."""
    found = {(0, 0): 0}
    x, y = 1, 0
    for step in range(_ROUNDS):
        found[x, y] = (step + 1) * (step + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    return found


def round_constants() -> list[int]:
    """Return what is added to the first word in each round. Source: FIPS 202, algorithms 5 and 6."""
    constants = []
    register = 1
    for _ in range(_ROUNDS):
        constant = 0
        for power in range(7):
            if register & 1:
                constant |= 1 << ((1 << power) - 1)
            register <<= 1
            if register & 0x100:
                register ^= 0x171
        constants.append(constant)
    return constants


def _join(phi: ir.PhiInstr, *cases: tuple[ir.Value, ir.Block]) -> None:
    for value, block in cases:
        phi.add_incoming(value, block)
