"""Exact arithmetic, for the rows that floats could not decide.

Every number here is a fraction, an interval between two fractions, or a random real number whose bits are drawn as
a comparison needs them. Kernels decide all comparisons except about one in 10¹¹. The others are decided here, with
the same random bits, so a pick has exactly the law of the mechanism on the given floats. This code is slow
(milliseconds a row) and plain. It is the specification of what the kernels compute.
"""

from dpselect.exact.streams import ExactStream

__all__ = ["ExactStream"]
