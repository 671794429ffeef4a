"""ChaCha20 (RFC 8439) as a source of random words, one independent stream for each unit.

A stream is the key stream of a 32-byte key and a 12-byte nonce: the nonce is the unit's address, so what a
row draws depends on (key, unit) alone, never on its position, its batch or its thread.

Blocks are computed LANES at a time, the same word of all blocks side by side in one vector. A *group* is
the LANES · 64 bytes this gives, in that order. A stream has three regions, told apart by block number:

- sequential words, for draws that follow each other;
- one byte for each candidate, and one word for each candidate, both addressed by the candidate's index, so
  that a sampler may look at as many of them as it needs without changing what the others are. Random stopping
  reads the bytes as words, and has one of the other words for each draw.

A stream is one flat array, a *tape*: the block function's input (constants, key, block number, nonce), where
reading has got to, a group of each region, and some counts. One array is what the compiler handles without
bookkeeping.
"""

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpselect.kernels.arrays import WordArray
from dpselect.kernels.compilation import borrowing, compiled

Tape: TypeAlias = NDArray[np.uint64]

LANES = 8
GROUP_BYTES = LANES * 64
GROUP_WORDS = LANES * 8

BYTE_REGION = 2**30
WORD_REGION = 2**31
"""The numbers of their first blocks; the sequential region starts at 0."""

STATE, USED, READ, LOADED_BYTES, LOADED_WORDS = 0, 8, 9, 10, 11
"""Where the tape holds the input, the words used of the sequential group, the groups read, the groups loaded."""

SEQUENCE, BYTES, WORDS = 16, 16 + GROUP_WORDS, 16 + 2 * GROUP_WORDS
OCTAVES = 64
COUNTS = 16 + 3 * GROUP_WORDS
"""Where random stopping counts its draws by octaves of noise, and at most how many octaves there are."""

TAPE_LENGTH = COUNTS + OCTAVES + 1
NO_GROUP = 2**63

CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u8").astype(np.uint64)
QUARTER_ROUNDS = (  # columns, then diagonals
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


@intrinsic
def compute_group(typing_context: Any, tape: Any, block: Any, target: Any) -> Any:
    """Write the blocks numbered ``block``, ``block`` + 1, … to the tape, starting at ``target``."""
    word, index = ir.IntType(32), ir.IntType(64)
    vector = ir.VectorType(word, LANES)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        words = builder.bitcast(array.data, word.as_pointer())
        first = builder.gep(array.data, [arguments[2]])
        groups = builder.bitcast(first, vector.as_pointer())

        def splat(value: Any) -> Any:
            single = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(word, 0))
            return builder.shuffle_vector(single, single, ir.Constant(vector, [0] * LANES))

        def rotate(value: Any, bits: int) -> Any:
            left = builder.shl(value, ir.Constant(vector, [bits] * LANES))
            return builder.or_(left, builder.lshr(value, ir.Constant(vector, [32 - bits] * LANES)))

        start = [splat(builder.load(builder.gep(words, [ir.Constant(index, i)]))) for i in range(16)]
        numbers = splat(builder.trunc(arguments[1], word))
        start[12] = builder.add(numbers, ir.Constant(vector, list(range(LANES))))
        x = list(start)
        for _ in range(10):
            for a, b, c, d in QUARTER_ROUNDS:
                for total, addend, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    x[total] = builder.add(x[total], x[addend])
                    x[mixed] = rotate(builder.xor(x[mixed], x[total]), bits)
        for i in range(16):
            place = builder.gep(groups, [ir.Constant(index, i)])
            builder.store(builder.add(start[i], x[i]), place, align=8)
        return context.get_dummy_value()

    return types.void(tape, types.int64, types.int64), generate


@borrowing
def fill_group(tape: Tape, block: int | np.int64, target: int) -> None:
    """Write the group that begins with a block to the tape, starting at ``target``."""
    compute_group(tape, block, target)  # type: ignore[call-arg]


@compiled
def new_stream(key: WordArray) -> Tape:
    """Return the tape for a key of 8 words, not yet at any unit."""
    tape = np.zeros(TAPE_LENGTH, np.uint64)
    tape[0:2] = CONSTANTS
    for i in range(4):
        tape[2 + i] = np.uint64(key[2 * i]) | (np.uint64(key[2 * i + 1]) << np.uint64(32))
    return tape


@borrowing
def seek(tape: Tape, nonces: WordArray, row: int) -> None:
    """Move to the start of the stream addressed by a row's nonce of 3 words."""
    tape[6] = np.uint64(nonces[row, 0]) << np.uint64(32)
    tape[7] = np.uint64(nonces[row, 1]) | (np.uint64(nonces[row, 2]) << np.uint64(32))
    tape[USED] = GROUP_WORDS
    tape[READ] = 0
    tape[LOADED_BYTES] = tape[LOADED_WORDS] = NO_GROUP


@borrowing
def next_group(tape: Tape) -> None:
    """Load the next group of the sequential region."""
    block = np.int64(tape[READ]) * LANES
    if block >= BYTE_REGION:  # 64 GiB: a stream must end before it runs into another region
        raise OverflowError("a random stream is exhausted")
    fill_group(tape, block, SEQUENCE)
    tape[READ] += np.uint64(1)


@borrowing
def next_word(tape: Tape) -> np.uint64:
    """Return the next 64 bits of the sequential region."""
    used = np.int64(tape[USED])
    if used == GROUP_WORDS:
        next_group(tape)
        used = np.int64(0)
    tape[USED] = used + 1
    word: np.uint64 = tape[SEQUENCE + used]
    return word


@borrowing
def load_bytes(tape: Tape, group: int) -> None:
    """Load the bytes of candidates GROUP_BYTES · group and following, eight to a word of the tape."""
    fill_group(tape, BYTE_REGION + group * LANES, BYTES)
    tape[LOADED_BYTES] = group


@borrowing
def candidate_byte(tape: Tape, candidate: int) -> np.uint64:
    """Return the byte of a candidate whose group is loaded."""
    word = tape[BYTES + (candidate & (GROUP_BYTES - 1)) // 8]
    byte: np.uint64 = (word >> np.uint64(8 * (candidate & 7))) & np.uint64(0xFF)
    return byte


@borrowing
def packed_word(tape: Tape, number: int) -> np.uint64:
    """Return 64 bits of the byte region, for samplers that read that as words."""
    group = number // GROUP_WORDS
    if tape[LOADED_BYTES] != np.uint64(group):
        load_bytes(tape, group)
    word: np.uint64 = tape[BYTES + (number & (GROUP_WORDS - 1))]
    return word


@borrowing
def candidate_word(tape: Tape, candidate: int) -> np.uint64:
    """Return the 64 bits of the word region that belong to a candidate, or to a draw."""
    group = candidate // GROUP_WORDS
    if tape[LOADED_WORDS] != np.uint64(group):
        fill_group(tape, WORD_REGION + group * LANES, WORDS)
        tape[LOADED_WORDS] = group
    word: np.uint64 = tape[WORDS + candidate % GROUP_WORDS]
    return word
