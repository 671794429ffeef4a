"""Samplers in exact arithmetic, each with the random bits of its twin in :mod:`dpselect.kernels.samplers`."""
