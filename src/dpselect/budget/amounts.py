"""Prices and caps as the decimal numbers that were typed, summed without rounding.

The float 0.1 is not a tenth, and ten of them sum to more than 1. People who type 0.1 mean a tenth, so the ledger
reads every float as the shortest decimal that represents it, the one that Python prints. Sums and comparisons of
these decimals are exact: releases may use up a cap exactly, and after that no further release fits, however small.
docs/theory/accounting.md explains what that means for the privacy loss.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpselect.guarantees import Guarantee


def read_decimal(number: float) -> Fraction:
    """Return the shortest decimal that represents a float.

    Example:
        >>> read_decimal(0.1), 10 * read_decimal(0.1) == read_decimal(1.0)
        (Fraction(1, 10), True)
    """
    return Fraction(repr(float(number)))


def float_from(amount: Fraction) -> float:
    """Return the smallest float that, read as a decimal, is at least the amount.

    Example:
        >>> float_from(3 * read_decimal(0.1)), 3 * 0.1
        (0.3, 0.30000000000000004)
    """
    nearest = float(amount)
    return nearest if read_decimal(nearest) >= amount else math.nextafter(nearest, math.inf)


def price_of(mechanism: Any) -> Guarantee:  # noqa: ANN401 - anything with a guarantee
    """Return the guarantee to charge for a mechanism. A list costs the decimal sum of its picks.

    Example:
        >>> import dpselect as dps
        >>> top = dps.TopK(dps.NoisyMax(0.1), 10)
        >>> top.guarantee.epsilon, price_of(top).epsilon
        (1.0000000000000002, 1.0)
    """
    promise: Guarantee = mechanism.guarantee
    if getattr(mechanism, "count", None) is None:
        return promise
    epsilon = min(
        promise.epsilon, float_from(mechanism.count * read_decimal(mechanism.mechanism.guarantee.epsilon))
    )
    flat = None if promise.flat_epsilon is None else min(promise.flat_epsilon, epsilon)
    return replace(
        promise, epsilon=epsilon, flat_epsilon=flat, laplace_epsilon=min(promise.laplace_epsilon, epsilon)
    )
