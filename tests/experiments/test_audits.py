"""The audit section: what it must find, and which claims its checks must reject."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from experiments import audits
from experiments.drawing import look
from experiments.experiment import FAST
from experiments.ledger import Verdict


@pytest.fixture(scope="module")
def tables():
    found = {}
    for task in audits.AUDITS.plan(replace(FAST, audit_restarts=3)):
        found.setdefault(task.table, []).append(task.compute())
    return {name: pa.concat_tables(parts) for name, parts in found.items()}


def test_each_mechanism_is_audited_and_only_the_naive_one_exceeds_its_epsilon(tables):
    rows = tables["losses"].to_pylist()
    assert {row["mechanism"] for row in rows} == set(audits.AUDITED)
    guilty = {row["mechanism"] for row in rows if row["verdict"] == "violated"}
    assert guilty == {"naive noisy max", "naive noisy max, Laplace"}
    assert max(row["loss"] for row in rows if row["mechanism"] == "naive noisy max") == math.inf


def test_gem_is_tighter_the_more_candidates_there_are(tables):
    losses = {(row["ratio"], row["candidates"]): row["loss"] for row in tables["tightness"].to_pylist()}
    assert all(losses[1.0, k] == pytest.approx(0.5, abs=1e-6) for k in audits.COUNTS)
    assert losses[1.5, 3] == pytest.approx(0.68, abs=0.03)
    assert losses[1.5, 16] > losses[1.5, 3]


def test_the_paper_s_pairs_lose_what_their_algebra_says(tables):
    rivals = tables["rivals"]["rivals"].to_numpy()
    np.testing.assert_allclose(tables["rivals"]["heterogeneous"].to_numpy(), rivals, rtol=1e-9)
    limit = -2 * math.log(1 - 0.95 * (1 - math.exp(-1 / 6)))
    stopping = tables["rivals"]["stopping"].to_numpy()
    assert (np.diff(stopping) > 0).all()
    assert (stopping < limit).all()
    assert stopping[-1] == pytest.approx(limit, abs=0.01)


def test_the_claims_hold_and_would_not_if_a_loss_were_larger(tables):
    claims = {claim.id: claim for claim in audits.AUDITS.claims}
    assert {id_: claim.check(tables).verdict for id_, claim in claims.items()} == dict.fromkeys(
        claims, Verdict.HOLDS
    )
    broken = tables["losses"].to_pylist()
    for row in broken:
        row["verdict"], row["loss"] = "violated", 1.5
    assert all(
        claim.check({"losses": pa.Table.from_pylist(broken)}).verdict is not Verdict.HOLDS
        for claim in claims.values()
    )


def test_every_row_shows_its_witness(tables):
    (listing,) = audits.AUDITS.listings(tables)
    assert [row[0] for row in listing.rows] == list(audits.AUDITED)
    assert all(len(row) == len(listing.columns) for row in listing.rows)
    assert all("Δ = (" in row[-1] for row in listing.rows)


def test_no_label_touches_the_line_at_epsilon(tables):
    with look():
        panel = audits.AUDITS.draw(tables).axes[0]
    assert len(panel.texts) == len(audits.AUDITED)
    for label in panel.texts:
        assert label.xy[0] >= audits.EPSILON
        assert label.get_position()[0] > 0  # points to the right of it
        assert label.get_horizontalalignment() == "left"


def test_the_caption_states_the_losses_of_the_table(tables):
    numbers = audits.AUDITS.numbers(tables)
    assert 0.9 < float(numbers["gem"]) < 1
    assert float(numbers["stopping"]) == pytest.approx(0.31, abs=0.006)  # the limit of the algebra above
    assert audits.AUDITS.caption.format_map(numbers)
