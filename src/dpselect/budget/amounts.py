"""Prices and caps as the decimal numbers that were typed, summed without rounding.

The float 0.1 is not a tenth, and ten of them sum to more than 1. People who type 0.1 mean a tenth, so the ledger
reads every float as the shortest decimal that represents it, the one that Python prints. Sums and comparisons of
these decimals are exact: releases may use up a cap exactly, and after that no further release fits, however small.
docs/theory/accounting.md explains what that means for the privacy loss.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

__all__ = ["decimal_sum", "float_from", "read_decimal"]


def read_decimal(number: float) -> Fraction:
    """Return the shortest decimal that represents a float.

    Example:
        >>> read_decimal(0.1), 10 * read_decimal(0.1) == read_decimal(1.0)
        (Fraction(1, 10), True)
    """
    return Fraction(repr(float(number)))


def decimal_sum(prices: Iterable[tuple[float, int]]) -> Fraction:
    """Return the sum of prices, each read as a decimal and multiplied by its count."""
    return sum((count * read_decimal(price) for price, count in prices), Fraction(0))


def float_from(amount: Fraction) -> float:
    """Return the smallest float that, read as a decimal, is at least the amount.

    Example:
        >>> float_from(3 * read_decimal(0.1)), 3 * 0.1
        (0.3, 0.30000000000000004)
    """
    nearest = float(amount)
    return nearest if read_decimal(nearest) >= amount else math.nextafter(nearest, math.inf)
