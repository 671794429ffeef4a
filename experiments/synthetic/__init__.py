"""The paper's figures on synthetic data, one module each."""

from experiments.synthetic.bimodal import BIMODAL
from experiments.synthetic.bounds import BOUNDS
from experiments.synthetic.counterexamples import COUNTEREXAMPLES
from experiments.synthetic.exactness import EXACTNESS
from experiments.synthetic.gammas import GAMMAS
from experiments.synthetic.halves import HALVES
from experiments.synthetic.increasing import INCREASING
from experiments.synthetic.laplace import LAPLACE_MAXIMUM
from experiments.synthetic.layouts import CORRELATION_LAYOUTS
from experiments.synthetic.overall import OVERALL
from experiments.synthetic.polarised import BOX_PLOTS, POLARISED
from experiments.synthetic.realistic import REALISTIC
from experiments.synthetic.shares import SHARES
from experiments.synthetic.sketches import SKETCHES
from experiments.synthetic.tilts import TILTS
from experiments.synthetic.two_candidates import (
    GAMMA_ABLATION,
    HETEROGENEITY_GAIN,
    NAIVE_PANELS,
    STOPPING_PANELS,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    BIMODAL,
    SHARES,
    HALVES,
    HETEROGENEITY_GAIN,
    GAMMA_ABLATION,
    NAIVE_PANELS,
    STOPPING_PANELS,
    SKETCHES,
    CORRELATION_LAYOUTS,
    REALISTIC,
    INCREASING,
    POLARISED,
    BOX_PLOTS,
    OVERALL,
    LAPLACE_MAXIMUM,
    BOUNDS,
    COUNTEREXAMPLES,
    TILTS,
    GAMMAS,
    EXACTNESS,
)
"""In the order of the report."""
