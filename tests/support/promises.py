"""Guarantees of several kinds."""

import dpselect as dps

PURE = dps.GEM(epsilon=0.3).guarantee
GUMBEL = dps.NoisyMax(epsilon=0.5, noise="gumbel").guarantee
ANYWAY = dps.RandomizedResponse(epsilon=0.7).guarantee
MONOTONE = dps.NoisyMax(epsilon=0.2, monotone=True).guarantee
APPROXIMATE = dps.Guarantee(epsilon=1.0, delta=1e-6, theorem="given", reference="none")
