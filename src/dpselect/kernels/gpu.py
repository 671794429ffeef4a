"""Top share on a CUDA device: the same words of the same streams, so the same picks as on the CPU.

A warp takes ROWS rows. First its lanes compute the first group of all their streams, one block of ChaCha20 each.
Then it takes row after row. Lanes read a word each and draw a candidate from it, 32 at once, and some of these are
weighed against the whole row. That takes two or three passes, and only the first of them reads memory beyond the
caches. All lanes of a warp always take the same branches.

Floats decide only the coin. Where they cannot, the pick is UNRESOLVED, and the caller decides in exact arithmetic.

Indices are unsigned, since Numba checks signed ones for being negative. Sums of 32-bit numbers are cast, since it
makes 64 bits of them.
"""

import importlib.util
import math
import sys
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import config, cuda, types
from numpy import int32, int64, uint64
from numpy import uint32 as u32
from numpy.typing import NDArray

from dpselect.kernels import weighted_draws
from dpselect.kernels.arrays import INVALID, LARGEST, UNRESOLVED, FloatArray, IndexArray, Share, WordArray
from dpselect.kernels.chacha import CONSTANTS, LANES
from dpselect.kernels.samplers.top_share import DIVISOR, FREE_DRAWS
from dpselect.kernels.weighted_draws import UNIT

FactArray: TypeAlias = NDArray[uint64]
PartArray: TypeAlias = NDArray[int32]

WARP, ALL, NONE = 32, 0xFFFFFFFF, u32(0xFFFFFFFF)
ROWS, WARPS, LEAST_BLOCKS = WARP // LANES, 4, 128
"""Rows of a warp, warps of a block, and the number of blocks below which Numba warns."""

WORDS = 8 * LANES
STRIDE = 2 * WORDS + 1
"""The 32-bit halves of the words of a group, and the number of the group."""
SHARED = WARPS * ROWS * STRIDE

EQUAL, COLUMNS, COLUMNS_LEFT, HEIGHT, HEIGHT_LEFT, SHARE, PASS_BELOW, FAIL_ABOVE, REPORT = range(9)
"""Facts about the weights. The last one counts the rows that got no pick."""
OWNERS, CUTS, OTHERS = range(3)

DRAW, TIED, PLACE, AMONG = (int32(stage) for stage in range(4))
"""What words are drawn for: candidates; whether one that ties is inside the share; a place in the share; one of
those that tie."""

AT_ONCE = 4
"""Scores that a lane reads before it compares the first. This many weights must have a sum below 2³²."""

OPTIONS = {} if config.ENABLE_CUDASIM else {"max_registers": 64}  # type: ignore[attr-defined]
"""With fewer registers, more warps wait for memory at once. The simulator has no such option."""

C0, C1, C2, C3 = (u32(word) for word in CONSTANTS.view(u32))


class Stream(NamedTuple):
    """The random stream of a row, and the place of its group in shared memory."""

    words: WordArray
    start: u32
    key: tuple[u32, ...]
    nonces: WordArray
    row: u32


@cuda.jit(device=True)
def rotate(word: u32, bits: int) -> u32:
    """Return a word whose bits are rotated to the left."""
    return u32(u32(word << u32(bits)) | u32(word >> u32(32 - bits)))


@cuda.jit(device=True)
def quarter(a: u32, b: u32, c: u32, d: u32) -> tuple[u32, u32, u32, u32]:
    """Return the quarter round of four words."""
    a = u32(a + b)
    d = rotate(u32(d ^ a), 16)
    c = u32(c + d)
    b = rotate(u32(b ^ c), 12)
    a = u32(a + b)
    d = rotate(u32(d ^ a), 8)
    c = u32(c + d)
    return a, rotate(u32(b ^ c), 7), c, d


@cuda.jit(device=True)
def put(words: WordArray, at: u32, a: u32, b: u32, c: u32, d: u32) -> None:
    """Write four words of a block, each next to the same word of the other blocks."""
    words[at], words[u32(at + u32(LANES))] = a, b
    words[u32(at + u32(2 * LANES))], words[u32(at + u32(3 * LANES))] = c, d


@cuda.jit(device=True)
def fill_block(stream: Stream, group: u32, block: u32) -> None:
    """Write a block of a group to where the CPU has it. Without addresses, a row's number is its address."""
    words, start, key, nonces, row = stream
    n0, n1, n2 = row, u32(0), u32(0)
    if nonces.shape[1] == 3:
        n0, n1, n2 = nonces[row, 0], nonces[row, 1], nonces[row, 2]
    number = u32(u32(group * u32(LANES)) + block)
    a0, a1, a2, a3 = C0, C1, C2, C3
    b0, b1, b2, b3, c0, c1, c2, c3 = key
    d0, d1, d2, d3 = number, n0, n1, n2
    for _ in range(10):
        a0, b0, c0, d0 = quarter(a0, b0, c0, d0)
        a1, b1, c1, d1 = quarter(a1, b1, c1, d1)
        a2, b2, c2, d2 = quarter(a2, b2, c2, d2)
        a3, b3, c3, d3 = quarter(a3, b3, c3, d3)
        a0, b1, c2, d3 = quarter(a0, b1, c2, d3)
        a1, b2, c3, d0 = quarter(a1, b2, c3, d0)
        a2, b3, c0, d1 = quarter(a2, b3, c0, d1)
        a3, b0, c1, d2 = quarter(a3, b0, c1, d2)
    at, four = u32(start + block), u32(4 * LANES)
    put(words, at, u32(a0 + C0), u32(a1 + C1), u32(a2 + C2), u32(a3 + C3))
    at = u32(at + four)
    put(words, at, u32(b0 + key[0]), u32(b1 + key[1]), u32(b2 + key[2]), u32(b3 + key[3]))
    at = u32(at + four)
    put(words, at, u32(c0 + key[4]), u32(c1 + key[5]), u32(c2 + key[6]), u32(c3 + key[7]))
    put(words, u32(at + four), u32(d0 + number), u32(d1 + n0), u32(d2 + n1), u32(d3 + n2))
    words[u32(start + u32(2 * WORDS))] = group


@cuda.jit(device=True)
def load(stream: Stream, group: u32) -> None:
    """Let a row's group in shared memory be this one."""
    if stream.words[u32(stream.start + u32(2 * WORDS))] != group:
        cuda.syncwarp()
        if cuda.laneid < LANES:
            fill_block(stream, group, u32(cuda.laneid))
        cuda.syncwarp()


@cuda.jit(device=True)
def word_at(stream: Stream, number: u32) -> uint64:
    """Return 64 bits of the group that is loaded."""
    at = u32(stream.start + u32(u32(number & u32(WORDS - 1)) << u32(1)))
    return uint64(stream.words[at]) | uint64(stream.words[u32(at + u32(1))]) << uint64(32)


@cuda.jit(device=True)
def leading_zeros(number: int) -> Any:
    """Return the number of zero bits above the highest bit that is set."""
    high = u32(number >> 32)
    return cuda.clz(high) if high > 0 else 32 + cuda.clz(u32(number))


@cuda.jit(device=True)
def total(value: int32) -> int64:
    """Return the sum over the lanes of a warp, of 32 bits."""
    step = WARP // 2
    while step > 0:
        value = int32(value + cuda.shfl_xor_sync(ALL, value, step))
        step //= 2
    return int64(value)


@cuda.jit(device=True)
def total_long(value: int64) -> int64:
    """Return the sum over the lanes of a warp."""
    step = WARP // 2
    while step > 0:
        value += cuda.shfl_xor_sync(ALL, value, step)
        step //= 2
    return value


@cuda.jit(device=True)
def candidate_of(word: uint64, facts: FactArray, columns: PartArray) -> u32:
    """Return the candidate that a word draws from the weights, or NONE if another word must."""
    low = uint64(ALL)
    column, place = (word >> uint64(32)) * facts[COLUMNS], (word & low) * facts[HEIGHT]
    chosen = u32(column >> uint64(32))
    if column & low < facts[COLUMNS_LEFT] or place & low < facts[HEIGHT_LEFT]:
        return NONE
    if facts[EQUAL] != 0:
        return chosen
    inside = u32(place >> uint64(32)) < u32(columns[CUTS, chosen])
    return u32(columns[OWNERS if inside else OTHERS, chosen])


@cuda.jit(device=True)
def weigh(scores: FloatArray, weights: PartArray, bar: float, limit: float) -> tuple[int, int, bool]:
    """Return the weight of the scores above the bar, of those at it, and whether all are finite.

    A single weight is that of all. Beyond the end, lanes read the last score, so that no load waits for a branch.
    """
    size, first, single = u32(scores.size), u32(cuda.laneid), weights.size == 1
    above, at, few_above, few_at, fine = int64(0), int64(0), u32(0), u32(0), True
    while single and first < u32(size & ~u32(AT_ONCE * WARP - 1)):
        step, start = 0, uint64(first)
        while step < AT_ONCE:
            score = scores[start + uint64(step * WARP)]
            fine &= abs(score) <= limit
            few_above = u32(few_above + u32(score > bar))
            few_at = u32(few_at + u32(score == bar))
            step += 1
        first = u32(first + u32(AT_ONCE * WARP))
    while first < size:
        step = 0
        while step < AT_ONCE:
            a = u32(first + u32(step * WARP))
            inside = a < size
            a = a if inside else u32(size - u32(1))
            score, weight = scores[a], u32(1) if single else u32(weights[a])
            fine &= abs(score) <= limit
            few_above = u32(few_above + (weight if inside & (score > bar) else u32(0)))
            few_at = u32(few_at + (weight if inside & (score == bar) else u32(0)))
            step += 1
        if not single:
            above, at, few_above, few_at = above + int64(few_above), at + int64(few_at), u32(0), u32(0)
        first = u32(first + u32(AT_ONCE * WARP))
    fine = cuda.all_sync(ALL, fine)
    if single:
        return total(int32(few_above)) * UNIT, total(int32(few_at)) * UNIT, fine
    return total_long(above), total_long(at), fine


@cuda.jit(device=True)
def find(scores: FloatArray, weights: PartArray, bar: float, at: bool, place: int) -> u32:
    """Return the candidate at a place of the weights of those above the bar, or at it."""
    first = u32(0)
    while True:
        a = u32(first + u32(cuda.laneid))
        until = int64(0)
        if a < scores.size and ((scores[a] == bar) if at else (scores[a] > bar)):
            until = int64(weights[a if weights.size > 1 else u32(0)])
        step = 1
        while step < WARP:
            before = cuda.shfl_up_sync(ALL, until, step)
            until += before if cuda.laneid >= step else 0
            step *= 2
        beyond = u32(cuda.ballot_sync(ALL, until > place))
        if beyond != 0:
            return u32(first + u32(cuda.ffs(beyond) - 1))
        place -= cuda.shfl_sync(ALL, until, WARP - 1)
        first = u32(first + u32(WARP))


@cuda.jit(device=True)
def pick_row(
    scores: FloatArray, limit: float, facts: FactArray, weights: PartArray, columns: PartArray, stream: Stream
) -> int64:
    """Return the pick of a row, UNRESOLVED, or INVALID.

    The words after the coin are read in windows of 32, one for each lane, as long as all candidates are drawn from.
    The CPU weighs one after the other of those that are better than all before, until one is inside the share. If
    one is, so are those after it, so the first is searched by halving. Then words are read one by one: to draw from
    better candidates, or to share what is left among those that tie.
    """
    lane, coin, share = u32(cuda.laneid), word_at(stream, u32(0)), int64(facts[SHARE])
    left = int32(1 + FREE_DRAWS + scores.size // DIVISOR)
    stage, cursor, window, after, records = DRAW, u32(1), u32(0), u32(0), u32(0)
    better, tied, bound = int64(0), int64(0), int64(1)
    a, candidate, from_all, checked, found = NONE, NONE, NONE, False, False
    bar = level = score = limit
    while True:
        if records != 0:
            middle, skipped = records, (cuda.popc(records) - 1) // 2
            while skipped > 0:
                middle, skipped = u32(middle & u32(middle - u32(1))), skipped - 1
            source = int32(cuda.ffs(middle) - 1)
            trial, trial_level = u32(cuda.shfl_sync(ALL, int32(a), source)), cuda.shfl_sync(ALL, score, source)
            trial_after = u32(window + u32(source + 1))
        else:
            load(stream, u32(cursor // u32(WORDS)))
            if stage == DRAW and left > 0:
                window = u32(cursor & ~u32(WARP - 1))
                own = u32(window + lane)
                a = candidate_of(word_at(stream, own), facts, columns)
                drawn = u32(cuda.ballot_sync(ALL, a != NONE and own >= cursor))
                while int32(cuda.popc(drawn)) > left:
                    drawn = u32(drawn ^ u32(u32(1) << u32(31 - cuda.clz(drawn))))
                left = int32(left - int32(cuda.popc(drawn)))
                cursor = u32(window + u32(WARP if left > 0 else WARP - cuda.clz(drawn)))
                if from_all == NONE and drawn != 0:
                    from_all = u32(cuda.shfl_sync(ALL, int32(a), int32(cuda.ffs(drawn) - 1)))
                    drawn = u32(drawn & u32(drawn - u32(1)))
                mine, top = u32(drawn >> lane) & u32(1) != 0, bar if checked else -limit
                if mine:
                    score = scores[a]
                    top = score if score > top else top  # noqa: FURB136 - as compiled code it is one type
                step = 1
                while step < WARP:
                    other = cuda.shfl_up_sync(ALL, top, step)
                    top = other if lane >= step and other > top else top
                    step *= 2
                other = cuda.shfl_up_sync(ALL, top, 1)
                higher = score > other if lane > 0 else (score > bar or not checked)
                records = u32(cuda.ballot_sync(ALL, mine and higher))
                if not checked:
                    records = u32(records | u32(drawn & u32(~drawn + u32(1))))
                continue
            number = int64(word_at(stream, cursor) >> uint64(leading_zeros(bound)))
            cursor = u32(cursor + u32(1))
            if number >= bound:
                continue
            if stage == TIED and number < share - better:
                break
            if stage == TIED:
                stage, bound = PLACE, share
                continue
            if stage == PLACE and number >= better:
                stage, bound = AMONG, tied
                continue
            trial, source = find(scores, weights, bar, stage == AMONG, number), int32(0)
            if stage != DRAW:
                candidate = trial
                break
            trial_level, trial_after = scores[trial], cursor
        above, at, fine = weigh(scores, weights, trial_level, limit)
        if not fine:
            return int64(INVALID)
        checked = True
        lower = u32(u32(u32(1) << u32(source)) - u32(1))
        if above < share:
            candidate, level, better, tied, after, found = trial, trial_level, above, at, trial_after, True
            records = u32(records & lower)
        else:
            bar, bound = trial_level, above
            records = u32(records & ~u32(u32(lower << u32(1)) | u32(1)))
        if found and records == 0:
            if better + tied <= share:
                break
            stage, bound, cursor, bar = TIED, tied, after, level
    if coin < facts[PASS_BELOW]:
        return int64(from_all)
    return int64(candidate) if coin > facts[FAIL_ABOVE] else int64(UNRESOLVED)


@cuda.jit(**OPTIONS)
def select_rows(
    scores: FloatArray,
    limit: float,
    facts: FactArray,
    weights: PartArray,
    columns: PartArray,
    key: tuple[u32, ...],
    nonces: WordArray,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row."""
    words = cuda.shared.array(SHARED, types.uint32)
    lane, rows = u32(cuda.laneid), u32(picks.shape[0])
    part = u32(u32(u32(cuda.threadIdx.x) >> u32(5)) * u32(ROWS))
    first = u32(u32(u32(cuda.blockIdx.x) * u32(ROWS * WARPS)) + part)
    turn = u32(lane // u32(LANES))
    row, start = u32(first + turn), u32(u32(part + turn) * u32(STRIDE))
    if row < rows:
        fill_block(Stream(words, start, key, nonces, row), u32(0), u32(lane % u32(LANES)))
    cuda.syncwarp()
    turn = u32(0)
    while turn < ROWS and u32(first + turn) < rows:
        row, start = u32(first + turn), u32(u32(part + turn) * u32(STRIDE))
        stream = Stream(words, start, key, nonces, row)
        pick = pick_row(scores[row], limit, facts, weights, columns, stream)
        if lane == 0:
            picks[row] = pick
            if pick < 0:
                cuda.atomic.add(facts, REPORT, uint64(1))
        turn = u32(turn + u32(1))


_KERNELS: dict[tuple[int, type], Any] = {}


@lru_cache(maxsize=16)
def tables(weights: bytes | None, size: int, share: Share, error_bound: float, device: int) -> tuple[Any, ...]:
    """Return the facts about weights, the weights, columns to draw from, and what stands for addresses.

    They stay on the device for later calls: a small transfer takes as long as many rows. The coin falls as in
    :mod:`dpselect.kernels.coins`: it is sure below one bound and above another.
    """
    del device  # each has its own
    urn = weighted_draws.new_urn(size if weights else 1)
    sizes = weighted_draws.fill_urn(np.frombuffer(weights), urn) if weights else weighted_draws.equal_sizes(size)
    odds = weighted_draws.odds_of(share, sizes)
    chance = math.exp(-odds.gap) * 2.0**64
    low = int(max(chance * (1.0 - 2.0 * error_bound) - 2.0, 0.0))
    high = int(min(chance * (1.0 + 2.0 * error_bound) + 2.0, 2.0**64))
    columns = sizes.columns, sizes.columns_left, sizes.height, sizes.height_left
    facts = [int(fact) for fact in (sizes.equal, *columns, odds.share, low, min(high, 2**64 - 1), 0)]
    whole = np.full(1, UNIT) if sizes.equal else urn.weights
    arrays = np.array(facts, uint64), whole.astype(int32), np.array(urn[1:], int32), np.zeros((1, 1), u32)
    return tuple(map(cuda.to_device, arrays))


def select(
    scores: Any,
    weights: FloatArray | None,
    share: Share,
    error_bound: float,
    key: WordArray,
    nonces: WordArray | None,
    device: int,
) -> tuple[Any, bool]:
    """Return one pick for each row, on the device, and whether all rows have one.

    Scores are rows of float32 or float64 of any library. All rows share the weights, which are checked. Without
    nonces, a row's number is its address.
    """
    kind = np.float32 if str(scores.dtype).endswith("float32") else np.float64
    limit = kind(min(LARGEST, float(np.finfo(kind).max)))
    rows, size = scores.shape
    with cuda.gpus[device]:
        stream, argument, picks = _prepare(scores)
        shared = None if weights is None else weights.tobytes()
        *public, addresses = tables(shared, size, share, error_bound, device)
        addresses = addresses if nonces is None else cuda.to_device(nonces, stream)
        arguments = argument, limit, *public, tuple(key), addresses, picks
        kernel = select_rows
        if _library(scores) == "torch" and scores.is_contiguous():  # whose types are slow to find out
            kernel = _KERNELS[device, kind] = _KERNELS.get((device, kind)) or select_rows.specialize(*arguments)
        kernel[max(LEAST_BLOCKS, -(-rows // (ROWS * WARPS))), WARP * WARPS, stream](*arguments)
        facts = public[0].copy_to_host(stream=stream)
        if stream:
            stream.synchronize()
    if facts[REPORT]:
        tables.cache_clear()  # they have the report, and another call may yet read it
    return picks, not facts[REPORT]


@cache
def is_available() -> bool:
    """Tell whether there is a device, with all that it takes to compile for it."""
    gone = "row_stack"  # which NumPy 2.5 no longer has, and which Numba-CUDA 0.30 asks for when it is loaded
    if importlib.util.find_spec("numba_cuda") and not hasattr(np, gone):
        setattr(np, gone, np.vstack)
        importlib.import_module("numba.cuda.np.arrayobj")
        delattr(np, gone)
    return bool(cuda.is_available())


def _library(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def _prepare(scores: Any) -> tuple[Any, Any, Any]:
    """Return the stream on which the library of the scores works, scores as Numba takes them, room for picks."""
    library: Any = sys.modules.get(_library(scores))
    rows = scores.shape[0]
    if _library(scores) == "torch":
        number = library.cuda.current_stream(scores.device).cuda_stream
        picks = scores.new_empty(rows, dtype=library.int64)
    elif _library(scores) == "cupy":
        number, picks = library.cuda.get_current_stream().ptr, library.empty(rows, int64)
    else:
        number, picks = 0, cuda.device_array(rows, int64)
        if _library(scores) == "jaxlib":  # which has streams of its own, and refuses Numba's request by DLPack
            scores = cuda.as_cuda_array(scores.block_until_ready(), sync=False)
    return cuda.external_stream(number) if number else 0, scores, picks


def as_library(picks: Any, scores: Any) -> Any:
    """Return picks as an array of the library of the scores."""
    if _library(scores) == "jaxlib":
        return sys.modules["jax"].numpy.array(picks).block_until_ready()  # a copy: Numba frees the original
    return picks
