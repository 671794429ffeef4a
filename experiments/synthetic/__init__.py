"""The paper's figures on synthetic data, one module each."""

from experiments.synthetic.bimodal import BIMODAL

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (BIMODAL,)
"""In the order of the report."""
