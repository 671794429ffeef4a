"""ChaCha20 (RFC 8439) as a source of random words, one independent stream for each unit.

A stream is the key stream of a 32-byte key and a 12-byte nonce: the nonce is the unit's address, so what a
row draws depends on (key, unit) alone, never on its position, its batch or its thread.
"""

from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import WordArray
from dpselect.kernels.compilation import compiled

CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4").astype(np.uint32)


class Stream(NamedTuple):
    """A position in one key stream."""

    state: WordArray
    """The block function's input: constants, key, block counter, nonce."""
    block: WordArray
    """The current block of 16 words, and after them the number of words already used."""


@compiled
def new_stream(key: WordArray) -> Stream:
    """Return a stream for a key of 8 words, not yet at any unit."""
    state = np.zeros(16, np.uint32)
    state[0:4] = CONSTANTS
    state[4:12] = key
    return Stream(state, np.zeros(17, np.uint32))


@compiled
def seek(stream: Stream, nonce: WordArray) -> None:
    """Move to the start of the stream addressed by a nonce of 3 words."""
    stream.state[12] = 0
    stream.state[13:16] = nonce
    stream.block[16] = 16


@compiled
def quarter_round(x: WordArray, a: int, b: int, c: int, d: int) -> None:
    """Mix four words in place. Stores into the array wrap around at 32 bits."""
    x[a] += x[b]
    x[d] ^= x[a]
    x[d] = (x[d] << 16) | (x[d] >> 16)
    x[c] += x[d]
    x[b] ^= x[c]
    x[b] = (x[b] << 12) | (x[b] >> 20)
    x[a] += x[b]
    x[d] ^= x[a]
    x[d] = (x[d] << 8) | (x[d] >> 24)
    x[c] += x[d]
    x[b] ^= x[c]
    x[b] = (x[b] << 7) | (x[b] >> 25)


@compiled
def fill_block(state: WordArray, block: WordArray) -> None:
    """Fill the first 16 words of ``block`` with the block function of ``state``."""
    for i in range(16):
        block[i] = state[i]
    for _ in range(10):
        quarter_round(block, 0, 4, 8, 12)
        quarter_round(block, 1, 5, 9, 13)
        quarter_round(block, 2, 6, 10, 14)
        quarter_round(block, 3, 7, 11, 15)
        quarter_round(block, 0, 5, 10, 15)
        quarter_round(block, 1, 6, 11, 12)
        quarter_round(block, 2, 7, 8, 13)
        quarter_round(block, 3, 4, 9, 14)
    for i in range(16):
        block[i] += state[i]


@compiled
def next_word(stream: Stream) -> np.uint64:
    """Return the next 64 random bits."""
    used = stream.block[16]
    if used == 16:
        fill_block(stream.state, stream.block)
        stream.state[12] += np.uint32(1)
        if stream.state[12] == 0:  # 256 GiB of one stream: it must end before it repeats
            raise OverflowError("a random stream is exhausted")
        used = np.uint32(0)
    stream.block[16] = used + 2
    return np.uint64(stream.block[used]) | (np.uint64(stream.block[used + 1]) << np.uint64(32))
