"""Exact arithmetic, for the rows that floats could not decide.

Every number here is a fraction, an interval with fractions as ends, or a random real number of which as many
bits are drawn as a comparison needs. Kernels decide all comparisons except about one in 10¹¹. The others end up
here, with the same random bits, so that a pick has exactly the law of the mechanism on the given floats. Slow
(milliseconds a row), plain, and the specification of what the kernels compute.
"""

from dpselect.exact.streams import ExactStream

__all__ = ["ExactStream"]
