"""ChaCha20 against its standard, and streams that depend only on key and unit."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import dpselect as dps
from dpselect.kernels import chacha, coins

KEY = bytes(range(100, 132))
MECHANISMS = {name: make(epsilon=0.5) for name, make in dps.MECHANISMS.items()}
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
rng = np.random.default_rng(9)
SCORES, WIDTHS = rng.normal(size=(60, 8)), rng.uniform(0.1, 1.0, 8)


def keyed(units):
    return dps.Randomness.keyed(KEY, units)


# --- ChaCha20 ---------------------------------------------------------------------------------------------

RFC_8439 = {
    "2.3.2": (
        bytes(range(32)).hex(),
        "000000090000004a00000000",
        1,
        (
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
        ),
    ),
    "A.1 #1": (
        "00" * 32,
        "00" * 12,
        0,
        (
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        ),
    ),
    "A.1 #2": (
        "00" * 32,
        "00" * 12,
        1,
        (
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
            "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
        ),
    ),
}


def words(data):
    return np.frombuffer(data, dtype="<u4").astype(np.uint32)


def state_at(nonce=bytes(12), key=None):
    stream = chacha.new_stream(words(KEY if key is None else key))
    chacha.seek(stream, words(nonce).reshape(1, 3), 0)
    return stream


def group_of(key, nonce, block):
    """Return the blocks of a group, in order."""
    stream = state_at(nonce, key)
    chacha.fill_group(stream, block, chacha.SEQUENCE)
    group = stream[chacha.SEQUENCE : chacha.SEQUENCE + chacha.GROUP_WORDS]
    substreams = group.view(np.uint32).reshape(16, chacha.LANES)
    return [substreams[:, lane].astype("<u4").tobytes() for lane in range(chacha.LANES)]


def memory_order(key, nonce, block):
    """Return the bytes of a group as the stream holds them: word by word, all its blocks side by side."""
    blocks = [plain_block(key, nonce, block + lane) for lane in range(chacha.LANES)]
    return b"".join(block[4 * i : 4 * i + 4] for i in range(16) for block in blocks)


def plain_block(key, nonce, counter):
    """Return a ChaCha20 block by the text of RFC 8439, in Python integers."""
    head = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start = head + [int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)]
    start += [counter] + [int.from_bytes(nonce[i : i + 4], "little") for i in range(0, 12, 4)]
    x = list(start)

    def quarter(a, b, c, d):
        for into, from_, turned, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[into] = (x[into] + x[from_]) % 2**32
            mixed = x[turned] ^ x[into]
            x[turned] = (mixed << by | mixed >> (32 - by)) % 2**32

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(((a + b) % 2**32).to_bytes(4, "little") for a, b in zip(x, start, strict=True))


@pytest.mark.parametrize(("key", "nonce", "counter", "block"), RFC_8439.values(), ids=RFC_8439)
def test_blocks_are_those_of_the_standard(key, nonce, counter, block):
    key, nonce, block = map(bytes.fromhex, (key, nonce, block))
    assert group_of(key, nonce, counter)[0] == block
    assert plain_block(key, nonce, counter) == block
    for lane in range(min(counter, chacha.LANES - 1) + 1):
        assert group_of(key, nonce, counter - lane)[lane] == block


@pytest.mark.parametrize("counter", [0, 1, 77, 2**30, 2**31, 2**32 - 4])
def test_blocks_of_any_key_are_those_of_a_plain_implementation(counter):
    source = np.random.default_rng(counter)
    key, nonce = source.bytes(32), source.bytes(12)
    for lane, block in enumerate(group_of(key, nonce, counter)):
        assert block == plain_block(key, nonce, (counter + lane) % 2**32)


def test_a_stream_reads_the_groups_of_its_nonce_from_block_zero_on():
    nonce = bytes(range(12))
    stream = state_at(nonce)
    for _ in range(2):
        chacha.seek(stream, words(nonce).reshape(1, 3), 0)
        drawn = b"".join(int(chacha.next_word(stream)).to_bytes(8, "little") for _ in range(150))
        expected = b"".join(memory_order(KEY, nonce, chacha.LANES * group) for group in range(3))
        assert drawn == expected[:1200]


def test_candidates_have_bytes_and_words_of_their_own():
    nonce = bytes(range(12))
    stream = state_at(nonce)
    before = chacha.next_word(stream)
    chacha.load_bytes(stream, 1)
    loaded = stream[chacha.BYTES : chacha.BYTES + chacha.GROUP_WORDS].astype("<u8").tobytes()
    assert loaded == memory_order(KEY, nonce, 2**30 + chacha.LANES)
    assert [int(chacha.candidate_byte(stream, chacha.GROUP_BYTES + a)) for a in range(len(loaded))] == list(loaded)
    for number in (0, 63, 64, 1000, 5):
        group, place = divmod(number, chacha.GROUP_WORDS)
        expected = memory_order(KEY, nonce, 2**30 + chacha.LANES * group)[8 * place : 8 * place + 8]
        assert int(chacha.packed_word(stream, number)) == int.from_bytes(expected, "little")
    for candidate in (0, 63, 64, 1000, 5):
        group, place = divmod(candidate, chacha.GROUP_WORDS)
        expected = memory_order(KEY, nonce, 2**31 + chacha.LANES * group)[8 * place : 8 * place + 8]
        assert int(chacha.candidate_word(stream, candidate)) == int.from_bytes(expected, "little")
    chacha.seek(stream, words(nonce).reshape(1, 3), 0)
    assert chacha.next_word(stream) == before


def test_a_stream_ends_before_it_runs_into_the_next_region():
    stream = state_at()
    stream[chacha.READ] = chacha.BYTE_REGION // chacha.LANES
    with pytest.raises(OverflowError, match="exhausted"):
        chacha.next_word(stream)


# --- Draws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8, 100])
def test_integers_below_a_bound_are_uniform(bound):
    """The chi-square test has a false-alarm rate of 1e-6 and a fixed stream."""
    stream = state_at()
    counts = np.bincount([coins.draw_below(stream, bound) for _ in range(20_000)], minlength=bound)
    assert counts.size == bound
    assert bound == 1 or chisquare(counts).pvalue > 1e-6


def test_integers_below_a_huge_bound_reach_its_top_half():
    stream = state_at()
    bound = 2**31 + 1
    drawn = [coins.draw_below(stream, bound) for _ in range(200)]
    assert all(0 <= value < bound for value in drawn)
    assert max(drawn) > bound // 2


# --- Keys -------------------------------------------------------------------------------------------------


@every_mechanism
def test_a_seed_repeats_its_picks_and_another_seed_does_not(mechanism):
    picks = [mechanism.select(SCORES, WIDTHS, randomness=dps.Randomness.seeded(s)).tolist() for s in (7, 7, 8, -7)]
    assert picks[0] == picks[1]
    assert picks[0] != picks[2]
    assert picks[0] != picks[3]


def test_seeds_of_any_size_and_type_of_integer_are_distinct():
    seeds = [0, 1, -1, 127, 128, 255, 256, -128, -129, 2**31, 2**64, -(2**64), 10**50]
    keys = {dps.Randomness.seeded(seed).units(1).key.tobytes() for seed in seeds}
    assert len(keys) == len(seeds)
    assert dps.Randomness.seeded(np.int8(-1)) == dps.Randomness.seeded(-1)


@every_mechanism
def test_fresh_picks_differ_between_calls(mechanism):
    rows = np.tile(SCORES, (2, 1))
    first, second = (mechanism.select(rows, WIDTHS).tolist() for _ in range(2))
    assert first != second  # fails with probability below 1e-14 for every mechanism


def test_fresh_keys_come_from_the_operating_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)
    first, second = (MECHANISMS["rnm"].select(SCORES, WIDTHS).tolist() for _ in range(2))
    assert first == second


def test_rows_draw_from_different_streams():
    picks = MECHANISMS["uniform"].select(np.zeros((2000, 1000)), 1.0, randomness=dps.Randomness.seeded(0))
    assert len(set(picks.tolist())) > 800


def test_substreams_are_distinct_from_each_other_and_from_their_source():
    source = keyed(range(60))
    substreams = [
        source,
        source.substream("pick"),
        source.substream("correlation"),
        source.substream("pick").substream("pick"),
    ]
    picks = [MECHANISMS["uniform"].select(SCORES, 1.0, randomness=lane).tolist() for lane in substreams]
    assert len(set(map(tuple, picks))) == len(substreams)
    again = MECHANISMS["uniform"].select(SCORES, 1.0, randomness=source.substream("pick"))
    assert again.tolist() == picks[1]


def test_different_keys_give_different_picks():
    other = dps.Randomness.keyed(KEY[::-1], range(60))
    uniform = MECHANISMS["uniform"]
    one, two = (uniform.select(SCORES, 1.0, randomness=source).tolist() for source in (keyed(range(60)), other))
    assert one != two


def test_randomness_is_equal_only_if_its_picks_are_equal():
    assert keyed(["a"]) == keyed(["a"])
    assert keyed(["a"]) != keyed(["b"])
    assert keyed([1, 2]) != keyed([2, 1])


def test_a_key_never_shows():
    for source in (
        keyed(["ann"]),
        keyed([1, 2]).substream("pick"),
        dps.Randomness.seeded(5),
        dps.Randomness.fresh(),
    ):
        key = source.units(len(source._nonces) // 12 if source._nonces is not None else 1).key.tobytes()
        shown = repr(source) + str(source) + f"{source}"
        assert key.hex() not in shown
        assert repr(key) not in shown
        assert str(list(key)) not in shown
        assert "ann" not in shown
    assert repr(keyed(["ann", "bob"])) == "Randomness(keyed, 2 units)"


def test_errors_about_units_and_keys_do_not_show_them():
    with pytest.raises(ValueError, match="distinct") as caught:
        dps.Randomness.keyed(KEY, ["ann", "ann"])
    assert "ann" not in str(caught.value)
    with pytest.raises(ValueError, match="32 bytes") as caught:
        dps.Randomness.keyed(b"hush", [1])
    assert "hush" not in str(caught.value)


def test_randomness_can_be_sent_to_another_process():
    source = keyed(["ann", "bob"])
    copy = pickle.loads(pickle.dumps(source))  # noqa: S301
    picks = [MECHANISMS["rnm"].select(SCORES[:2], WIDTHS, randomness=r).tolist() for r in (source, copy)]
    assert picks[0] == picks[1]


# --- Units ------------------------------------------------------------------------------------------------

NAMES = [f"user {i}" for i in range(60)]


@every_mechanism
@pytest.mark.parametrize(
    "units", [list(range(60)), NAMES, [name.encode() for name in NAMES]], ids=["int", "str", "bytes"]
)
def test_a_pick_depends_on_key_and_unit_and_not_on_the_other_rows(mechanism, units):
    picks = mechanism.select(SCORES, WIDTHS, randomness=keyed(units))
    order = np.random.default_rng(4).permutation(60)
    permuted = mechanism.select(SCORES[order], WIDTHS, randomness=keyed([units[i] for i in order]))
    assert (permuted == picks[order]).all()
    some = order[:17]
    subset = mechanism.select(SCORES[some], WIDTHS, randomness=keyed([units[i] for i in some]))
    assert (subset == picks[some]).all()
    halves = [mechanism.select(SCORES[i], WIDTHS, randomness=keyed(units[i])) for i in (slice(25), slice(25, None))]
    assert (np.concatenate(halves) == picks).all()


@every_mechanism
def test_a_pick_does_not_depend_on_the_form_of_the_batch(mechanism):
    dense = mechanism.select(SCORES, WIDTHS, randomness=keyed(NAMES))
    bounds, widths = np.arange(0, 481, 8), np.tile(WIDTHS, 60)
    column = pa.array(SCORES.tolist())
    for scores in ((SCORES.ravel(), bounds), column):
        assert (mechanism.select(scores, widths, randomness=keyed(NAMES)) == dense).all()
    cube = mechanism.select(SCORES.reshape(3, 20, 8), WIDTHS, randomness=keyed(NAMES))
    assert (cube.ravel() == dense).all()


@every_mechanism
def test_a_pick_does_not_depend_on_the_number_of_threads(mechanism, monkeypatch):
    scores, widths = rng.normal(size=(700, 30)), rng.uniform(0.1, 1.0, (700, 30))
    picks, laws = [], []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("DPSELECT_THREADS", threads)
        picks.append(mechanism.select(scores, widths, randomness=keyed(range(700))))
        laws.append(mechanism.pmf(scores, widths))
    assert (picks[0] == picks[1]).all()
    assert (picks[0] == picks[2]).all()
    assert (laws[0] == laws[1]).all()
    assert (laws[0] == laws[2]).all()


def test_rows_of_very_different_length_are_shared_among_threads_without_loss(monkeypatch):
    lengths = np.r_[40_000, np.ones(50, int), 30_000, np.full(9, 1000), 1]
    bounds = np.r_[0, np.cumsum(lengths)]
    scores = rng.normal(size=bounds[-1]), bounds
    picks = []
    for threads in ("1", "2", "7", "100"):
        monkeypatch.setenv("DPSELECT_THREADS", threads)
        picks.append(MECHANISMS["gem"].select(scores, 1.0, randomness=dps.Randomness.seeded(1)).tolist())
    assert picks[1:] == picks[:-1]


def test_units_of_every_kind_of_integer_are_the_same_units():
    uniform, scores = MECHANISMS["uniform"], np.zeros((3, 10**6))
    picks = [
        uniform.select(scores, 1.0, randomness=keyed(units)).tolist()
        for units in (
            [1, 2, 3],
            (1, 2, 3),
            range(1, 4),
            np.array([1, 2, 3], np.uint8),
            np.array([1, 2, 3], np.int32),
        )
    ]
    assert picks[1:] == picks[:-1]


def test_units_that_look_alike_are_different_units():
    units = [
        1,
        -1,
        2**32 + 1,
        "1",
        b"\x31\x00",
        "1 ",
        2**63 - 1,
        -(2**63),
        np.uint64(2**63),
        np.uint64(2**64 - 1),
    ]
    uniform, scores = MECHANISMS["uniform"], np.zeros((1, 10**6))
    picks = [int(uniform.select(scores, 1.0, randomness=keyed([unit]))[0]) for unit in units]
    assert len(set(picks)) == len(units)


def test_strings_and_their_bytes_are_different_units_and_numpy_strings_are_strings():
    uniform, scores = MECHANISMS["uniform"], np.zeros((2, 10**6))
    names = uniform.select(scores, 1.0, randomness=keyed(["é", "b"])).tolist()
    assert names != uniform.select(scores, 1.0, randomness=keyed(["é".encode(), b"b"])).tolist()
    assert names == uniform.select(scores, 1.0, randomness=keyed(np.array(["é", "b"]))).tolist()


# --- Threads and processes --------------------------------------------------------------------------------


def test_many_threads_may_select_at_once(monkeypatch):
    monkeypatch.setenv("DPSELECT_THREADS", "3")
    scores = rng.normal(size=(1500, 20))
    mechanism = MECHANISMS["combined-gem"]
    alone = mechanism.select(scores, 1.0, randomness=dps.Randomness.seeded(3))
    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(mechanism.select, scores, 1.0, randomness=dps.Randomness.seeded(3)) for _ in range(24)]
        fresh = [pool.submit(mechanism.select, scores, 1.0) for _ in range(6)]
        assert all((job.result() == alone).all() for job in jobs)
        # 1500 rows of 20 candidates: two agree with probability far below 1e-99.
        assert len({tuple(job.result().tolist()) for job in fresh}) == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forked_children_draw_fresh_keys_and_can_select_in_parallel():
    script = """
import os, sys, warnings
import numpy as np, dpselect as dps
warnings.simplefilter("ignore")
os.environ["DPSELECT_THREADS"] = "3"
scores = np.zeros((2000, 16))
mechanism = dps.NoisyMax(epsilon=1.0)
mechanism.select(scores, 1.0)
for child in range(2):
    pid = os.fork()
    if pid == 0:
        print("".join("%x" % pick for pick in mechanism.select(scores, 1.0)), flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
print("".join("%x" % pick for pick in mechanism.select(scores, 1.0)))
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    lines = done.stdout.split()
    assert [len(line) for line in lines] == [2000] * 3
    assert len(set(lines)) == 3  # two lines agree with probability 16^-2000


@pytest.mark.parametrize("units", [["ann", "bob"], [b"ann", b"bob"], [3, 4]])
def test_units_of_an_arrow_column_are_those_of_a_list(units):
    key = bytes(range(32))
    for column in (pa.array(units), pa.chunked_array([units[:1], units[1:]])):
        assert dps.Randomness.keyed(key, column) == dps.Randomness.keyed(key, units)


def test_units_must_not_be_missing():
    with pytest.raises(ValueError, match="units must be"):
        dps.Randomness.keyed(bytes(32), pa.array(["ann", None]))
