"""Samplers, compiled: one module each, with the same name as its exact twin in :mod:`dpselect.exact.samplers`.

A sampler returns the picked index, or UNRESOLVED where floats could not decide. The twin reads the same bits in
the same order, so it gives an unresolved row the pick that infinitely precise floats would have given. Samplers
never use a pmf: privacy does not depend on quadrature.
"""

from dpselect.kernels import modules_of

__getattr__ = modules_of(__name__)
