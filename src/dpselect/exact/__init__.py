"""Samplers in exact arithmetic, for the rows that floats could not decide.

Every number here is a fraction, an interval with fractions as ends, or a random real number of which as many
bits are drawn as a comparison needs. Kernels decide all but about one comparison in 10¹¹; the rest ends up
here, with the same random bits, so that what is returned has exactly the law of the mechanism on the given
floats. Slow (milliseconds a row), plain, and the specification of what the kernels compute.
"""

from dpselect.exact.gaps import (
    Gaps,
    global_gaps,
    individual_gaps,
    pairwise_gap,
    pairwise_gaps,
    upper_hull,
)
from dpselect.exact.largest_draws import pick_by_random_stopping
from dpselect.exact.picks import (
    largest_priority,
    pick_noisy_max,
    pick_passer_at_fixed_work,
    pick_randomized_response,
    report_sign,
)
from dpselect.exact.reals import is_below_exp
from dpselect.exact.streams import ExactStream

__all__ = [
    "ExactStream",
    "Gaps",
    "global_gaps",
    "individual_gaps",
    "is_below_exp",
    "largest_priority",
    "pairwise_gap",
    "pairwise_gaps",
    "pick_by_random_stopping",
    "pick_noisy_max",
    "pick_passer_at_fixed_work",
    "pick_randomized_response",
    "report_sign",
    "upper_hull",
]
