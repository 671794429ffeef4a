"""ChaCha20 (RFC 8439) as a source of random words, one independent stream for each unit.

A stream is the key stream of a 32-byte key and a 12-byte nonce: the nonce is the unit's address, so what a
row draws depends on (key, unit) alone, never on its position, its batch or its thread.

Blocks are computed LANES at a time, the same word of all blocks side by side in one vector. A *group* is
the LANES · 64 bytes this gives, in that order. A stream has three regions, told apart by block number:

- sequential words, for draws that follow each other;
- one byte for each candidate, and one word for each candidate, both addressed by the candidate's index, so
  that a sampler may look at as many of them as it needs without changing what the others are.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dpselect.kernels.arrays import IndexArray, WordArray
from dpselect.kernels.compilation import compiled

CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4").astype(np.uint32)
LANES = 8
GROUP_BYTES = LANES * 64
GROUP_WORDS = LANES * 8
BYTE_REGION = 2**30
WORD_REGION = 2**31

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


class Stream(NamedTuple):
    """A position in one key stream, and room for the groups being read."""

    state: WordArray
    """The block function's input: constants, key, block number, nonce."""
    sequence: WordArray
    """The current group of the sequential region, 16 × LANES, and in the next field the same as 64-bit words."""
    sequence_words: NDArray[np.uint64]
    candidate_bytes: NDArray[np.uint8]
    """A group of the byte region, seen as bytes; the next field is the same memory as 16 × LANES."""
    byte_group: WordArray
    candidate_words: NDArray[np.uint64]
    """A group of the word region, seen as 64-bit words; the next field is the same memory as 16 × LANES."""
    word_group: WordArray
    position: IndexArray
    """Words of the sequence used; groups of it read; which group of the word region is loaded."""


@intrinsic
def mix_lanes(typing_context: Any, words: Any) -> Any:  # noqa: ANN401, ARG001 - compiler's types
    """Replace LANES inputs of the block function, 16 words × LANES, by its outputs."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        vector = ir.VectorType(ir.IntType(32), LANES)
        base = builder.bitcast(array.data, vector.as_pointer())
        places = [builder.gep(base, [ir.Constant(ir.IntType(64), i)]) for i in range(16)]
        start = [builder.load(place, align=4) for place in places]
        x = list(start)

        def rotate(value: Any, bits: int) -> Any:  # noqa: ANN401
            left = builder.shl(value, ir.Constant(vector, [bits] * LANES))
            return builder.or_(left, builder.lshr(value, ir.Constant(vector, [32 - bits] * LANES)))

        for _ in range(10):
            for a, b, c, d in QUARTER_ROUNDS:
                for total, addend, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    x[total] = builder.add(x[total], x[addend])
                    x[mixed] = rotate(builder.xor(x[mixed], x[total]), bits)
        for place, before, after in zip(places, start, x, strict=True):
            builder.store(builder.add(before, after), place, align=4)
        return context.get_dummy_value()

    return types.void(words), generate


@compiled
def fill_group(state: WordArray, block: int, group: WordArray) -> None:
    """Fill a group with the blocks numbered ``block``, ``block`` + 1, …"""
    for i in range(16):
        for lane in range(LANES):
            group[i, lane] = state[i]
    for lane in range(LANES):
        group[12, lane] = np.uint32(block + lane)
    mix_lanes(group)  # type: ignore[call-arg]


@compiled
def new_stream(key: WordArray) -> Stream:
    """Return a stream for a key of 8 words, not yet at any unit."""
    state = np.zeros(16, np.uint32)
    state[0:4] = CONSTANTS
    state[4:12] = key
    sequence = np.zeros((16, LANES), np.uint32)
    byte_group = np.zeros((16, LANES), np.uint32)
    word_group = np.zeros((16, LANES), np.uint32)
    return Stream(
        state,
        sequence,
        sequence.reshape(16 * LANES).view(np.uint64),
        byte_group.reshape(16 * LANES).view(np.uint8),
        byte_group,
        word_group.reshape(16 * LANES).view(np.uint64),
        word_group,
        np.zeros(3, np.int64),
    )


@compiled
def seek(stream: Stream, nonce: WordArray) -> None:
    """Move to the start of the stream addressed by a nonce of 3 words."""
    stream.state[13:16] = nonce
    stream.position[0] = GROUP_WORDS
    stream.position[1] = 0
    stream.position[2] = -1


@compiled
def next_word(stream: Stream) -> np.uint64:
    """Return the next 64 bits of the sequential region."""
    used = stream.position[0]
    if used == GROUP_WORDS:
        block = stream.position[1] * LANES
        if block >= BYTE_REGION:  # 64 GiB: a stream must end before it runs into another region
            raise OverflowError("a random stream is exhausted")
        fill_group(stream.state, block, stream.sequence)
        stream.position[1] += 1
        used = 0
    stream.position[0] = used + 1
    return stream.sequence_words[used]


@compiled
def load_bytes(stream: Stream, group: int) -> None:
    """Fill ``stream.candidate_bytes`` with the bytes of candidates GROUP_BYTES · group and following."""
    fill_group(stream.state, BYTE_REGION + group * LANES, stream.byte_group)


@compiled
def candidate_word(stream: Stream, candidate: int) -> np.uint64:
    """Return the 64 bits of the word region that belong to a candidate."""
    group = candidate // GROUP_WORDS
    if stream.position[2] != group:
        fill_group(stream.state, WORD_REGION + group * LANES, stream.word_group)
        stream.position[2] = group
    return stream.candidate_words[candidate % GROUP_WORDS]
