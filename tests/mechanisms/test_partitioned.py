"""One selection in many parts: the law of the mechanism in memory, and the picks of an exact twin."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import dpselect as dps
from dpselect.cli import main
from dpselect.exact import ExactStream
from dpselect.exact.gaps import global_gaps, pairwise_gaps
from dpselect.exact.partial_uniform import bernoulli_exp, largest_priority
from dpselect.laws.base import FILTER_ERROR
from dpselect.mechanisms.base import law_name
from dpselect.mechanisms.partitioned import PartitionedSelection

KEY = bytes(range(32))
MECHANISMS = {
    "rnm": dps.NoisyMax(epsilon=1.5),
    "monotone": dps.NoisyMax(epsilon=1.5, monotone=True),
    "tilted": dps.NoisyMax(epsilon=1.5, tilt=-0.7),
    "gem": dps.GEM(epsilon=1.5),
    "mgem": dps.ModifiedGEM(epsilon=1.5),
    "hedged": dps.GEM(epsilon=1.5, tilt=0.0),
}
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def select(mechanism, parts, key=KEY, width=FILTER_ERROR):
    class Selection(PartitionedSelection):
        _width = width

    selection = Selection(mechanism, key)
    summary = selection.merge([selection.summarize(q, d) for _, q, d in parts])
    kept = [contender for part in parts for contender in selection.contend(summary, *part)]
    return selection.decide(kept)


def twin(mechanism, names, scores, sensitivities, key=KEY):
    """Return the pick by exact arithmetic on all candidates at once."""
    scores, sensitivities = np.asarray(scores, float), np.asarray(sensitivities, float)
    budget = mechanism.epsilon if getattr(mechanism, "monotone", False) else mechanism.epsilon / 2
    tilt = getattr(mechanism, "tilt", -1.0)
    t = float(tilt * 2 / mechanism.epsilon * np.log(np.array([len(names)]) / mechanism.beta)[0])
    gaps_of = global_gaps if isinstance(mechanism, dps.NoisyMax) else pairwise_gaps
    gaps = gaps_of(scores, np.zeros(len(names)), sensitivities, t, budget)
    law = law_name(mechanism)
    stream = dps.Randomness.keyed(key, names).serving(f"PartitionedSelection({law})")
    units = stream.units(len(names))
    contenders = []
    for i, gap in enumerate(gaps):
        stream = ExactStream(units, i)
        coin, priority = stream.uniform(), stream.uniform()
        if gap is not None and bernoulli_exp(coin, gap):
            contenders.append((i, priority))
    return names[largest_priority(contenders)]


numbers = st.integers(-40, 40).map(lambda n: n / 8) | st.sampled_from([1e15, -1e15, 1e-9, 0.1, 1 / 3])
numbers |= st.integers(-1074, 300).map(lambda e: 2.0**e)
widths = st.integers(0, 24).map(lambda n: n / 8) | st.sampled_from([0.0, 1e-9, 1e9, 0.1, 1 / 3])
widths |= st.integers(-300, 300).map(lambda e: 2.0**e)


@every_mechanism
@given(data=st.data())
@settings(max_examples=40)
def test_picks_are_those_of_the_exact_twin_however_candidates_are_spread(mechanism, data):
    rows = data.draw(st.lists(st.tuples(numbers, widths), min_size=1, max_size=14))
    names = data.draw(st.permutations([f"c{i}" for i in range(len(rows))]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    scores, sensitivities = map(list, zip(*rows, strict=True))
    key = data.draw(st.binary(min_size=32, max_size=32))
    edges = list(zip([0, *cuts], [*cuts, len(rows)], strict=True))
    parts = [(names[a:b], scores[a:b], sensitivities[a:b]) for a, b in edges]
    expected = twin(mechanism, names, scores, sensitivities, key)
    assert select(mechanism, parts, key) == expected
    assert select(mechanism, parts[::-1], key, width=0.4) == expected  # floats decide almost nothing


@pytest.mark.parametrize("name", ["rnm", "tilted", "gem"])
def test_frequencies_are_the_probabilities_in_memory(name):
    """The false-alarm rate is 1e-6 for each mechanism; keys are fixed."""
    mechanism = MECHANISMS[name]
    scores = [0.5, 0.0, 1.0, 0.75, -0.5, 1.0]
    sensitivities = [1.0, 0.25, 0.5, 2.0, 0.0, 0.75]
    law = mechanism.pmf(scores, sensitivities)
    names = list("abcdef")
    draws = 1200
    counts = np.zeros(6)
    selection = PartitionedSelection(mechanism, KEY)
    halves = [(names[:2], scores[:2], sensitivities[:2]), (names[2:], scores[2:], sensitivities[2:])]
    summary = selection.merge(selection.summarize(q, d) for _, q, d in halves)
    for number in range(draws):
        selection = PartitionedSelection(mechanism, number.to_bytes(32, "little"))
        kept = [contender for half in halves for contender in selection.contend(summary, *half)]
        counts[names.index(selection.decide(kept))] += 1
    possible = law > 0
    assert counts[~possible].sum() == 0
    assert chisquare(counts[possible], law[possible] * draws).pvalue > 1e-6


@every_mechanism
def test_large_parts_keep_a_small_state_and_agree_with_one_part(mechanism):
    rng = np.random.default_rng(1)
    size = 200_000
    scores, sensitivities = rng.normal(size=size), rng.uniform(0.1, 2.0, size)
    names = rng.permutation(size)
    whole = [(names, scores, sensitivities)]
    step = size // 7
    parts = [(names[i : i + step], scores[i : i + step], sensitivities[i : i + step]) for i in range(0, size, step)]
    assert select(mechanism, parts) == select(mechanism, whole)
    summary = PartitionedSelection(mechanism, KEY).summarize(scores, sensitivities)
    assert (summary.count, summary.widest) == (size, sensitivities.max())
    assert len(summary.scores) < 200
    assert str(summary.scores[0]) not in repr(summary)


def test_priorities_that_tie_in_64_bits_are_decided_by_further_bits():
    selection = PartitionedSelection(dps.GEM(epsilon=1.0), KEY)
    units = dps.Randomness.keyed(KEY, ["a", "b"]).units(2)
    tied = [
        selection.contend(selection.summarize([0.0], 1.0), [name], [0.0], 1.0)[0]._replace(priority=5)
        for name in "ab"
    ]
    streams = [ExactStream(units, i) for i in range(2)]
    for stream in streams:
        stream.word()
    expected = "ab"[largest_priority([(i, stream.uniform()) for i, stream in enumerate(streams)])]
    assert selection.decide(tied) == selection.decide(tied[::-1]) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda _: PartitionedSelection(dps.RandomStopping(epsilon=1.0), KEY), "mechanism must be NoisyMax or GEM"),
        (lambda _: PartitionedSelection(dps.GEM(epsilon=1.0, noise="gumbel"), KEY), "with exponential noise"),
        (lambda _: PartitionedSelection(dps.GEM(epsilon=1.0), b"short"), "key must be 32 bytes"),
        (lambda s: s.summarize([[1.0]], 1.0), "scores must be flat"),
        (lambda s: s.summarize([float("nan")], 1.0), "scores must be finite"),
        (lambda s: s.summarize([1.0], -1.0), "sensitivities must be ≥ 0"),
        (lambda s: s.summarize([1.0, 2.0], [[1.0, 1.0], [2.0, 2.0]]), "sensitivities must be one number"),
        (lambda s: s.contend(s.summarize([], []), ["a"], [1.0], 1.0), "this one holds no candidates"),
        (lambda s: s.contend(s.summarize([1.0], 1.0), ["a", "a"], [1.0, 1.0], 1.0), "units must be distinct"),
        (lambda s: s.decide([]), "contenders must not be empty"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(PartitionedSelection(dps.GEM(epsilon=1.0), KEY))


# --- From files -------------------------------------------------------------------------------------------------


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(KEY.hex())
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_the_command_line_picks_one_of_a_table(suffix, tmp_path, key_file, capsys):
    rng = np.random.default_rng(2)
    names = [f"c{i:03}" for i in rng.permutation(500)]
    table = pa.table({"candidate": names, "score": rng.normal(size=500), "sensitivity": rng.uniform(0.1, 1, 500)})
    path = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path, row_group_size=70)
    else:
        pa.feather.write_feather(table, path, chunksize=90)
    command = ["select", str(path), "--one", "--mechanism", "gem", "--epsilon", "2", "--key-file", key_file]
    assert main([*command, "-o", str(tmp_path / "p.json"), "--json", "--batch-candidates", "64"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == 500
    expected = twin(dps.GEM(epsilon=2.0), names, table["score"].to_numpy(), table["sensitivity"].to_numpy())
    assert json.loads((tmp_path / "p.json").read_text()) == [{"candidate": expected}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,0.5,1\na,0.25,1\n", "column 'candidate' must name each candidate once"),
        ("a,0.123456,1\nb,x,1\n", "row 1: column 'score' is missing or not a number"),
        ("a,0.123456,1\nb,1,-1\n", "row 1: column 'sensitivity' must be ≥ 0"),
        (",0.123456,1\n", "row 0: column 'candidate' is missing"),
        ("", "holds no candidates"),
    ],
)
def test_bad_rows_of_a_table_are_located(rows, message, tmp_path, capsys):
    (tmp_path / "t.csv").write_text("candidate,score,sensitivity\n" + rows)
    assert main(["select", str(tmp_path / "t.csv"), "--one", "--epsilon", "1"]) == 3
    captured = capsys.readouterr()
    assert message in captured.err
    assert "0.123" not in captured.err


def test_a_table_is_read_in_bounded_memory(tmp_path):
    """Six million candidates, 144 MB, in batches of 2^17: the peak stays well below the table."""
    rng = np.random.default_rng(3)
    schema = pa.schema([("candidate", pa.int64()), ("score", pa.float64()), ("sensitivity", pa.float64())])
    with pq.ParquetWriter(tmp_path / "t.parquet", schema) as writer:
        for first in range(0, 6_000_000, 500_000):
            names = np.arange(first, first + 500_000)
            writer.write_table(
                pa.table([names, rng.normal(size=500_000), rng.uniform(0.1, 1, 500_000)], schema=schema)
            )
    script = """
import sys, pathlib, threading
from dpselect.cli import main
def used():  # without the file itself, which is mapped into memory
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024
def run(path):
    settings = ["--mechanism", "gem", "--epsilon", "1", "--batch-candidates", "131072", "-q"]
    main(["select", path, "--one", *settings, "-o", path + ".csv"])
run(sys.argv[1])
before, peak, done = used(), [0.0], threading.Event()
def watch():
    while not done.wait(0.005):
        peak[0] = max(peak[0], used())
watcher = threading.Thread(target=watch)
watcher.start()
run(sys.argv[2])
done.set()
watcher.join()
print(peak[0] - before)
"""
    pq.write_table(pq.read_table(tmp_path / "t.parquet").slice(0, 300_000), tmp_path / "small.parquet")
    paths = [str(tmp_path / name) for name in ("small.parquet", "t.parquet")]
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)  # noqa: S603
    assert float(done.stdout) < 110


def test_a_candidate_in_two_parts_is_refused_and_causes_no_endless_loop():
    with pytest.raises(ValueError, match="contenders must be distinct"):
        select(dps.NoisyMax(epsilon=1.0), [(["a"], [1.0], [1.0]), (["a"], [1.0], [1.0])])


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], "a", 7, None])
def test_candidates_must_name_each_score(names):
    selection = PartitionedSelection(dps.NoisyMax(epsilon=1.0), KEY)
    summary = selection.summarize([1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="candidates must have one identifier for each of the 2 scores"):
        selection.contend(summary, names, [1.0, 2.0], 1.0)


def test_a_summary_needs_at_least_one_part():
    with pytest.raises(ValueError, match="summaries must not be empty"):
        PartitionedSelection(dps.NoisyMax(epsilon=1.0), KEY).merge([])
