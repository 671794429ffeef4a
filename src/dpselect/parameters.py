"""Checks of parameters and other arguments. They are public, so messages show them."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, TypeVar

from dpselect.kernels.arrays import LARGEST

Noise: TypeAlias = Literal["exponential", "laplace", "gumbel"]
NOISES: tuple[Noise, ...] = ("exponential", "laplace", "gumbel")

Name = TypeVar("Name", bound=str)


def real(name: str, value: object) -> float:
    """Return a finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= LARGEST:  # also refuses NaN
        raise ValueError(f"{name} must be finite and at most 2^300 (2e90) in magnitude, got {number}")
    return number


Check: TypeAlias = Callable[[str, object], float]
"""A check of an argument of a name. It returns the value as a float."""


def _rule(rule: str, holds: Callable[[float], bool], *, first: Check = real) -> Check:
    def checked(name: str, value: object) -> float:
        number = first(name, value)
        if not holds(number):
            raise ValueError(f"{name} must {rule}, got {number}")
        return number

    return checked


positive = _rule("be positive (at least 2^-300, 5e-91)", lambda number: number >= 1 / LARGEST)
not_negative = _rule("be ≥ 0", lambda number: number >= 0)
above_minus_one = _rule("be > -1", lambda number: number > -1)
inside_unit_interval = _rule("be strictly between 0 and 1", lambda number: number < 1, first=positive)
probability = _rule("be > 0 and ≤ 1", lambda number: number <= 1, first=positive)


def between(name: str, value: object, least: float, most: float) -> float:
    """Return a number within limits, both included."""
    number = real(name, value)
    if not least <= number <= most:
        raise ValueError(f"{name} must be between {least:g} and {most:g}, got {number}".replace(" -", " −"))
    return number


def interval(name: str, value: Any) -> tuple[float, float]:
    """Return two different numbers from 0 to 1, the smaller first."""
    ends = as_tuple(name, value)
    if len(ends) != 2:
        raise ValueError(f"{name} must be two numbers, (low, high), got {len(ends)}")
    low, high = (between(f"{name}[{i}]", end, 0, 1) for i, end in enumerate(ends))
    if not low < high:
        raise ValueError(f"{name} must have low < high, got ({low:g}, {high:g})")
    return low, high


def count(name: str, value: object, *, least: int = 1, most: int = 2**63 - 1) -> int:
    """Return a whole number within limits."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number, got {type(value).__name__}")
    number = int(value)
    if number < least:
        raise ValueError(f"{name} must be ≥ {least}, got {number}")
    if number > most:
        raise ValueError(f"{name} must be ≤ {most}, got {number}")
    return number


def flag(name: str, value: object) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {type(value).__name__}")
    return value


def one_of(name: str, value: object, known: tuple[Name, ...]) -> Name:
    """Return one of several names."""
    for candidate in known:
        if isinstance(value, str) and value == candidate:
            return candidate
    given = repr(value) if isinstance(value, str) else type(value).__name__
    raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {given}")


def as_tuple(name: str, value: Any) -> tuple[Any, ...]:
    """Return the members of a collection."""
    try:
        return tuple(value)
    except TypeError:
        raise ValueError(f"{name} must be a list or another collection, got {type(value).__name__}") from None


def store(instance: Any, **checked: object) -> None:
    """Set fields of a frozen dataclass under construction to their checked values."""
    for name, value in checked.items():
        object.__setattr__(instance, name, value)
