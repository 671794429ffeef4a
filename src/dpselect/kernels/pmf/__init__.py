"""Exact probabilities, compiled: one module for each sampler, with the same name."""

from dpselect.kernels import modules_of

__getattr__ = modules_of(__name__)
