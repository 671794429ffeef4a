"""A table of recorded picks: it notices a change to samplers or streams that must come with a new stream format.

A pick that changes for a given key makes a paid release, computed again, a second release. If the change is meant,
raise ``dpselect.randomness.STREAM_FORMAT`` and record the table again: ``PYTHONPATH=tests/support python
tests/test_recorded_picks.py``.
"""

import hashlib
import json
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest
from routes import in_plain_python

import dpselect as dps
from dpselect import unsafe
from dpselect.randomness import STREAM_FORMAT

TABLE = Path(__file__).with_name("recorded_picks.json")
KEY = hashlib.blake2b(b"recorded picks", digest_size=32).digest()
NOISES = ("exponential", "laplace", "gumbel")

MECHANISMS = [
    *(dps.HeterogeneousNoisyMax(epsilon=e) for e in (0.1, 1.0, 16.0)),
    dps.HeterogeneousNoisyMax(epsilon=2.0, tilt=0.5),
    dps.HeterogeneousNoisyMax(epsilon=2.0, keep=(0.5, 1.0), neutral=False),
    *(dps.NoisyMax(epsilon=e, noise=noise) for noise in NOISES for e in (0.1, 1.0, 16.0)),
    *(dps.NoisyMax(epsilon=2.0, noise=noise, tilt=0.5) for noise in NOISES),
    dps.NoisyMax(epsilon=1.0, monotone=True),
    *(dps.GEM(epsilon=2.0, noise=noise) for noise in NOISES),
    *(dps.GEM(epsilon=e, tilt=tilt) for tilt in (-4.0, 0.0, 2.0) for e in (0.5, 8.0)),
    dps.GEM(epsilon=1.0, tilt=-1.0),
    *(dps.RandomStopping(epsilon=e, gamma=gamma) for e in (0.5, 8.0) for gamma in (0.3, 0.008)),
    *(dps.RandomStopping(epsilon=2.0, gamma=0.1, eta=eta) for eta in (-0.5, 0.0, 2.5)),
    *(dps.RandomStopping(epsilon=e, gamma=g, noise="exponential") for e in (0.5, 8.0) for g in (0.3, 0.001)),
    *(dps.RandomStopping(epsilon=2.0, gamma=0.1, eta=eta, noise="exponential") for eta in (-0.5, 0.0, 2.5)),
    *(dps.CombinedGEM(epsilon=e) for e in (0.5, 8.0)),
    dps.RandomizedResponse(epsilon=3.0),
    *(dps.TopShare(epsilon=e) for e in (0.1, 1.0, 16.0)),
    dps.TopShare(epsilon=3.0, share=0.03),
    dps.Uniform(),
    *(unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise) for noise in unsafe.SCALES),
]
SIZES = (1, 2, 7, 64, 65, 130, 700)


def rows_of(size):
    """Return scores and sensitivities with ties, zeros and a wide range."""
    source = np.random.default_rng(size)
    scores = np.round(source.normal(size=(60, size)), 1)
    sensitivities = np.round(10.0 ** source.uniform(-1.5, 0.5, (60, size)), 2)
    sensitivities[::5, ::3] = 0.0
    return scores, sensitivities


def digest(picks):
    """Return picks in short, the first ones readable."""
    whole = np.asarray(picks, dtype="<i8")
    return " ".join(map(str, whole[:12])) + " … " + hashlib.blake2b(whole.tobytes(), digest_size=8).hexdigest()


def in_memory(mechanism):
    for size in SIZES:
        scores, sensitivities = rows_of(size)
        keyed = dps.Randomness.keyed(KEY, range(60))
        yield f"{size} own", mechanism.select(scores, sensitivities, randomness=keyed)
        yield f"{size} shared", mechanism.select(scores, sensitivities[1], randomness=keyed)
    bounds = np.r_[0, np.cumsum(SIZES)]
    flat = [np.concatenate([rows_of(size)[i][3] for size in SIZES]) for i in (0, 1)]
    names = dps.Randomness.keyed(KEY, [f"row {size}" for size in SIZES])
    yield "ragged", mechanism.select((flat[0], bounds), flat[1], randomness=names)
    raw = dps.Randomness.keyed(KEY, [f"row {size}".encode() for size in SIZES])
    yield "ragged, bytes", mechanism.select((flat[0], bounds), flat[1], randomness=raw)


def with_public_numbers():
    scores, sensitivities = rows_of(65)
    offsets = np.linspace(-1, 1, 65) ** 3
    keyed = dps.Randomness.keyed(KEY, range(60))
    for mechanism in (
        dps.HeterogeneousNoisyMax(epsilon=1.0),
        dps.NoisyMax(epsilon=1.0),
        dps.GEM(epsilon=1.0),
        dps.GEM(epsilon=1.0, tilt=0.0),
    ):
        yield (
            f"{mechanism.law_name} offsets",
            mechanism.select(scores, sensitivities, offsets=offsets, randomness=keyed),
        )


def with_weights():
    keyed = dps.Randomness.keyed(KEY, range(60))
    for mechanism in (dps.TopShare(epsilon=1.0), dps.TopShare(epsilon=8.0)):
        for size in (7, 65, 700):
            weights = np.maximum(np.linspace(-0.2, 1, size), 0.0) ** 3
            yield (
                f"{mechanism.law_name} {size}",
                mechanism.select(rows_of(size)[0], weights=weights, randomness=keyed),
            )


def tuned():
    scores, sensitivities = rows_of(7)
    pool = [dps.NoisyMax(epsilon=1.0), dps.GEM(epsilon=1.0), dps.GEM(epsilon=1.0, tilt=-1.0), dps.Uniform()]
    for cap in (1.0, (0.01, 10.0)):
        chosen = [
            pool.index(
                dps.tuning.tune(
                    scores,
                    sensitivities,
                    *(1.0, 0.1),
                    cap=cap,
                    pool=pool,
                    randomness=dps.Randomness.keyed(KEY, str(i)),
                ).mechanism
            )
            for i in range(20)
        ]
        yield f"cap {cap}", chosen


def lists():
    keyed = dps.Randomness.keyed(KEY, range(60))
    for mechanism in (
        dps.HeterogeneousNoisyMax(epsilon=1.0),
        dps.NoisyMax(epsilon=1.0),
        dps.NoisyMax(epsilon=1.0, noise="gumbel"),
        dps.GEM(epsilon=1.0),
        dps.CombinedGEM(epsilon=1.0),
    ):
        for size in (7, 130):
            scores, sensitivities = rows_of(size)
            for form, widths in (("own", sensitivities), ("shared", sensitivities[1]), ("equal", 0.5)):
                top = dps.TopK(mechanism, count=5)
                picks = top.select(scores, widths, randomness=keyed).reshape(-1)
                yield f"{mechanism.law_name} {size} {form}", picks


def recorded(mechanism):
    return {name: digest(picks) for name, picks in in_memory(mechanism)}


def record():
    table = {mechanism.law_name: recorded(mechanism) for mechanism in MECHANISMS}
    for part in (with_public_numbers, with_weights, tuned, lists):
        table[part.__name__] = {name: digest(picks) for name, picks in part()}
    return {"stream format": STREAM_FORMAT, "picks": table}


@pytest.fixture(scope="module")
def table():
    return json.loads(TABLE.read_text("utf-8"))


def test_the_table_is_of_the_present_stream_format(table):
    assert table["stream format"] == STREAM_FORMAT


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=attrgetter("law_name"))
def test_a_key_gives_the_recorded_picks(mechanism, table):
    assert recorded(mechanism) == table["picks"][mechanism.law_name]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=attrgetter("law_name"))
def test_a_key_gives_the_recorded_picks_in_plain_python(mechanism, table):
    keyed = dps.Randomness.keyed(KEY, range(12))
    # In plain Python, neutral offsets take half a second. Rows that share their sensitivities share them too.
    form = "shared" if getattr(mechanism, "neutral", False) else "own"
    for size in SIZES:
        scores, sensitivities = rows_of(size)
        widths = sensitivities[1] if form == "shared" else sensitivities[:12]
        with in_plain_python():
            picks = mechanism.select(scores[:12], widths, randomness=keyed)
        readable = table["picks"][mechanism.law_name][f"{size} {form}"].partition(" …")[0]
        assert " ".join(map(str, picks)) == readable


@pytest.mark.parametrize("part", [with_public_numbers, with_weights, tuned, lists], ids=lambda part: part.__name__)
def test_a_key_gives_the_recorded_picks_with_public_numbers_in_tuning_and_in_lists(part, table):
    assert {name: digest(picks) for name, picks in part()} == table["picks"][part.__name__]


if __name__ == "__main__":
    TABLE.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n", "utf-8")
