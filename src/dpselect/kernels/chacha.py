"""ChaCha20 (RFC 8439) as a source of random words, with one independent stream for each unit.

A stream is the key stream of a 32-byte key and a 12-byte nonce. The nonce is the unit's address, so a row's draws
depend only on (key, unit), never on its position, its batch or its thread.

Blocks are computed LANES at a time, with the same word of all blocks side by side in one vector. The resulting
LANES · 64 bytes, in that order, are a *group*. A stream has three regions, which differ in their block numbers:

- sequential words, for draws that follow each other;
- one byte for each candidate;
- one word for each candidate.

The last two are addressed by the candidate's index, so a sampler can read as many of them as it needs without
changing the others. Random stopping reads the byte region as words, and uses one word of the word region for each
draw. It seldom needs more than half a group, so the first halves of two streams are computed together.

The state of a stream is one flat array: the input of the block function (constants, key, block number, nonce), the
read position, and one group of each region. The compiler handles a single array without reference counting.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import WordArray
from dpselect.kernels.compilation import compiled_without_refcounts, instruction

StreamState: TypeAlias = NDArray[np.uint64]

LANES = 8
GROUP_BYTES = LANES * 64
GROUP_WORDS = LANES * 8

BYTE_REGION = 2**30
WORD_REGION = 2**31
"""The numbers of the first blocks of these regions. The sequential region starts at 0."""

STATE, USED, READ, LOADED_BYTES, LOADED_WORDS = 0, 8, 9, 10, 11
"""Indices into the state: the input, the words used of the sequential group, the groups read, the groups loaded."""

OTHER, SIDE = 12, 14
"""Indices into the state: the nonce of a pair's second stream (two words), and where this stream's words start."""

# Not literal numbers: the compiler would compile a kernel for each of them.
SEQUENCE, BYTES, WORDS, PAIR = 16 + GROUP_WORDS * np.arange(4, dtype=np.int64)
PAIR_WORDS = GROUP_WORDS // 2
STATE_LENGTH = 16 + 4 * GROUP_WORDS
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


TURNED = [np.roll(np.arange(4), -i) for i in range(4)]


def _blocks(start: WordArray) -> WordArray:
    """Return the blocks of an input, 16 words for each lane.

    The four quarter rounds of a round are computed together. To turn columns into diagonals, rows are rotated.
    """
    a, b, c, d = start.reshape(4, 4, -1).copy()
    for number in range(20):
        if number % 2:
            b, c, d = b[TURNED[1]], c[TURNED[2]], d[TURNED[3]]
        for total, addend, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            np.add(total, addend, out=total)
            np.bitwise_xor(mixed, total, out=mixed)
            np.bitwise_or(mixed << np.uint32(bits), mixed >> np.uint32(32 - bits), out=mixed)
        if number % 2:
            b, c, d = b[TURNED[3]], c[TURNED[2]], d[TURNED[1]]
    return np.concatenate([a, b, c, d]) + start


def _store_blocks(stream: StreamState, start: WordArray, target: np.int64) -> None:
    """Compute the blocks of an input and write them to the state."""
    stream[target : target + GROUP_WORDS].view(np.uint32)[:] = _blocks(start).reshape(-1)


def _input(stream: StreamState) -> WordArray:
    """Return the words of the block function's input, each copied to all lanes."""
    return np.repeat(stream[:8].view(np.uint32), LANES).reshape(16, LANES)


@instruction
def compute_group(stream: StreamState, block: int | np.int64, target: np.int64) -> None:
    """Write the blocks numbered ``block``, ``block`` + 1, … to the state, starting at ``target``."""
    start = _input(stream)
    start[12] = np.arange(block, block + LANES)
    _store_blocks(stream, start, target)


@instruction
def compute_pair(stream: StreamState) -> None:
    """Write the first half of the byte region's first group to the state, for this stream and for the other one."""
    start, half = _input(stream), LANES // 2
    start[13:, half:] = stream[OTHER : OTHER + 2].view(np.uint32)[1:, None]
    start[12] = BYTE_REGION + np.arange(LANES) % half
    _store_blocks(stream, start, PAIR)


@compiled_without_refcounts
def fill_group(stream: StreamState, block: int | np.int64, target: np.int64) -> None:
    """Write the group that starts with ``block`` to the state, starting at ``target``."""
    compute_group(stream, block, target)


def new_stream(key: WordArray) -> StreamState:
    """Return the state for the streams of a key of 8 words, before the first ``seek``."""
    stream = np.zeros(STATE_LENGTH, np.uint64)
    stream[:2] = CONSTANTS
    stream[2:6] = key.view(np.uint64)
    return stream


@compiled_without_refcounts
def use_key(stream: StreamState, keys: WordArray, number: int) -> None:
    """Go on with one of several keys (8 words each). The next call is ``seek``."""
    for i in range(4):
        stream[2 + i] = np.uint64(keys[number, 2 * i]) | (np.uint64(keys[number, 2 * i + 1]) << np.uint64(32))


@compiled_without_refcounts
def seek(stream: StreamState, nonces: WordArray, row: int) -> None:
    """Move to the start of the stream that a row's nonce (3 words) addresses."""
    stream[6] = np.uint64(nonces[row, 0]) << np.uint64(32)
    stream[7] = np.uint64(nonces[row, 1]) | (np.uint64(nonces[row, 2]) << np.uint64(32))
    stream[USED] = GROUP_WORDS
    stream[READ] = 0
    stream[LOADED_BYTES] = stream[LOADED_WORDS] = NO_GROUP


@compiled_without_refcounts
def next_group(stream: StreamState) -> None:
    """Load the next group of the sequential region."""
    block = np.int64(stream[READ]) * LANES
    if block >= BYTE_REGION:  # 64 GiB: a stream must end before it reaches another region
        raise OverflowError("random stream exhausted: one unit may draw at most 64 GiB")
    fill_group(stream, block, SEQUENCE)
    stream[READ] += np.uint64(1)


@compiled_without_refcounts
def next_word(stream: StreamState) -> np.uint64:
    """Return the next 64 bits of the sequential region."""
    used = np.int64(stream[USED])
    if used == GROUP_WORDS:
        next_group(stream)
        used = np.int64(0)
    stream[USED] = used + 1
    word: np.uint64 = stream[SEQUENCE + used]
    return word


@compiled_without_refcounts
def load_bytes(stream: StreamState, group: int) -> None:
    """Load the bytes of the candidates from GROUP_BYTES · group on, eight in each word of the state."""
    fill_group(stream, BYTE_REGION + group * LANES, BYTES)
    stream[LOADED_BYTES] = group


@compiled_without_refcounts
def candidate_byte(stream: StreamState, candidate: int) -> np.uint64:
    """Return the byte of a candidate whose group is loaded."""
    word = stream[BYTES + (candidate & (GROUP_BYTES - 1)) // 8]
    byte: np.uint64 = (word >> np.uint64(8 * (candidate & 7))) & np.uint64(0xFF)
    return byte


@compiled_without_refcounts
def packed_word(stream: StreamState, number: int) -> np.uint64:
    """Return 64 bits of the byte region, for samplers that read it as words."""
    group = number // GROUP_WORDS
    if stream[LOADED_BYTES] != np.uint64(group):
        load_bytes(stream, group)
    word: np.uint64 = stream[BYTES + (number & (GROUP_WORDS - 1))]
    return word


@compiled_without_refcounts
def load_pair(stream: StreamState, nonces: WordArray, row: int, other: int) -> None:
    """Compute the first words of two rows' streams."""
    seek(stream, nonces, row)
    stream[OTHER] = np.uint64(nonces[other, 0]) << np.uint64(32)
    stream[OTHER + 1] = np.uint64(nonces[other, 1]) | (np.uint64(nonces[other, 2]) << np.uint64(32))
    compute_pair(stream)


@compiled_without_refcounts
def seek_in_pair(stream: StreamState, nonces: WordArray, row: int, second: int) -> None:
    """Move to the start of a stream that :func:`load_pair` has computed, as the first or second of the pair."""
    seek(stream, nonces, row)
    stream[SIDE] = PAIR + 2 * second


@compiled_without_refcounts
def paired_word(stream: StreamState, number: int) -> np.uint64:
    """Return 64 bits of the byte region of a paired stream: half of the first group, then all of the others."""
    if number < PAIR_WORDS:
        word: np.uint64 = stream[np.int64(stream[SIDE]) + 2 * number - (number & 1)]
        return word
    return packed_word(stream, number + PAIR_WORDS)


@compiled_without_refcounts
def candidate_word(stream: StreamState, candidate: int) -> np.uint64:
    """Return the 64 bits of the word region that belong to a candidate, or to a draw."""
    group = candidate // GROUP_WORDS
    if stream[LOADED_WORDS] != np.uint64(group):
        fill_group(stream, WORD_REGION + group * LANES, WORDS)
        stream[LOADED_WORDS] = group
    word: np.uint64 = stream[WORDS + candidate % GROUP_WORDS]
    return word


class ManyStreams:
    """The sequential words of many streams, in NumPy."""

    def __init__(self, key: WordArray, nonces: WordArray) -> None:
        self._key, self._nonces = key, nonces
        self._used = np.zeros(len(nonces), np.int64)
        self._words = np.empty((len(nonces), GROUP_WORDS), np.uint64)

    def next_words(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the next 64 bits of each of the given rows' streams."""
        used = self._used[rows]
        place = used % GROUP_WORDS
        if not place.all():
            self._load(rows[place == 0], used[place == 0] // GROUP_WORDS * LANES)
        self._used[rows] = used + 1
        words: NDArray[np.uint64] = self._words[rows, place]
        return words

    def _load(self, rows: NDArray[np.int64], blocks: NDArray[np.int64]) -> None:
        start = np.empty((16, rows.size, LANES), np.uint32)
        start[:4] = CONSTANTS.view(np.uint32)[:, None, None]
        start[4:12] = self._key[:, None, None]
        start[12] = blocks[:, None] + np.arange(LANES)
        start[13:] = self._nonces[rows].T[:, :, None]
        words = _blocks(start.reshape(16, -1)).reshape(start.shape).swapaxes(0, 1)
        self._words[rows] = words.reshape(rows.size, -1).view(np.uint64)
