"""SANSA, against EASE."""

import numpy as np
import pytest

from experiments.recommender.models import fit_ease
from experiments.recommender.sansa import SANSA_MISSING, fit_sansa, sansa_is_installed
from experiments.recommender.scoring import find_candidates, recall

pytestmark = pytest.mark.xdist_group("sansa")  # it compiles its own code in every process


@pytest.mark.skipif(sansa_is_installed(), reason="SANSA is installed")
def test_without_sansa_one_sentence_says_how_to_install_it(split):
    with pytest.raises(ModuleNotFoundError, match="libsuitesparse-dev"):
        fit_sansa(split.train, l2=1.0, density=1.0, factorisation="cholmod")


@pytest.mark.skipif(not sansa_is_installed(), reason=SANSA_MISSING)
def test_sansa_at_full_density_scores_as_ease_does_but_for_seen_items_which_score_one_less(split):
    ease = fit_ease(split.train, l2=20.0)
    sansa = fit_sansa(split.train, l2=20.0, density=1.0, factorisation="cholmod", scans=5)
    expected = ease.decode(ease.encode(split.inputs), 0, 80)
    found = sansa.decode(sansa.encode(split.inputs), 0, 80)
    np.testing.assert_allclose(found, expected - split.inputs.toarray(), atol=1e-5)
    np.testing.assert_array_equal(sansa.decode_all(sansa.encode(split.inputs)).toarray(), found)


@pytest.mark.skipif(not sansa_is_installed(), reason=SANSA_MISSING)
@pytest.mark.parametrize("factorisation", ["cholmod", "icf"])
def test_a_sparse_sansa_finds_nearly_what_ease_finds(split, factorisation):
    sansa = fit_sansa(split.train, l2=20.0, density=0.3, factorisation=factorisation)
    assert sansa.encoder.nnz <= 0.3 * 80 * 80 * 1.05
    found = [
        recall(find_candidates(model, split.inputs, size=20), split.targets, cutoff=20, capped=True)
        for model in (sansa, fit_ease(split.train, l2=20.0))
    ]
    assert found[0] > 0.8 * found[1] > 0
