"""Samplers in exact arithmetic. Each reads the random bits of its twin in :mod:`dpselect.kernels.samplers`."""
