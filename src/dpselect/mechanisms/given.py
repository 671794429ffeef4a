"""A mechanism from a function that returns probabilities."""

import hashlib
from dataclasses import dataclass
from functools import cached_property, partial
from types import CodeType
from typing import final

from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.given import GivenLaw, Probabilities
from dpselect.mechanisms.base import Mechanism


def from_pmf(function: Probabilities, *, guarantee: Guarantee, name: str | None = None) -> "Given":
    r"""Return a mechanism from a function that returns the probability of each candidate.

    It works wherever a mechanism does: ``select``, tables, releases, lists, errors, audits. For exact sampling and
    speed, write a class with one of the laws of this library: docs/guide/own-mechanism.md.

    Privacy:
        What ``guarantee`` says, which is yours to prove; :func:`dpselect.auditing.check` looks for mistakes. **It
        samples in floats.** A pick follows the numbers that the function returns exactly, but the function rounds
        them, and what it rounds to 0 is never picked. Relative errors of at most η add 2η to ε. A probability that
        underflows to 0 on one of two neighbours makes the loss infinite, so keep all of them above 1e-300.

        A key stands for the function's name, its code and the plain values it was made with (numbers, text). If it
        depends on anything else that changes, change ``name`` too. Another version of Python compiles other code:
        there the same key gives other picks, and a ledger takes it for another mechanism.

    Cost:
        That of the function for each row, and half a microsecond for each candidate.

    Args:
        function: Takes the scores and the sensitivities of one row, two arrays, and returns one probability for
            each candidate. It must depend on nothing else.
        guarantee: What you have proven. With ``neighbours=ANY_SCORES`` sensitivities may be left out; the function
            then gets zeros.
        name: A short name; by default that of the function.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> def softmax(scores, sensitivities):
        ...     weights = np.exp(np.maximum((scores - scores.max()) / (2 * sensitivities.max()), -600))
        ...     return weights / weights.sum()
        >>> proven = dps.Guarantee(epsilon=1.0, theorem="the exponential mechanism", reference="McSherry 2007")
        >>> mechanism = dps.from_pmf(softmax, guarantee=proven)
        >>> mechanism
        from_pmf(softmax, epsilon=1.0)
        >>> mechanism.pmf([0.0, 2.0], 1.0).round(3)
        array([0.269, 0.731])

    References:
        docs/guide/own-mechanism.md.
    """
    if not callable(function) or isinstance(function, type):
        raise ValueError(f"function must be a function of scores and sensitivities, got {type(function).__name__}")
    if not isinstance(guarantee, Guarantee):
        raise ValueError(
            "guarantee must be a Guarantee, such as dps.Guarantee(epsilon=1.0, theorem=..., reference=...); got "
            f"{type(guarantee).__name__}"
        )
    known = getattr(function, "__name__", type(function).__name__) if name is None else name
    if not isinstance(known, str) or not known:
        raise ValueError("name must be a non-empty text, or None for the function's name")
    return Given(function, guarantee, known)


@final
@dataclass(frozen=True, repr=False)
class Given(Mechanism):
    """What :func:`from_pmf` returns."""

    function: Probabilities
    promise: Guarantee
    name: str

    def __repr__(self) -> str:
        return f"from_pmf({self.name}, epsilon={self.promise.epsilon!r})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that was given."""
        return self.promise

    @property
    def label(self) -> str:
        """The name that was given, or the function's."""
        return self.name

    @property
    def uses_sensitivities(self) -> bool:
        """Whether the guarantee is for scores within the sensitivities."""
        return self.promise.neighbours != ANY_SCORES

    @cached_property
    def law_name(self) -> str:
        """The name, ε, and a hash of the function: a function that was changed must not serve a key again."""
        code = hashlib.blake2b(_description(self.function).encode(), digest_size=8).hexdigest()
        return f"from_pmf({self.name}, epsilon={self.promise.epsilon!r}, code={code})"

    def law(self, sizes: IndexArray) -> GivenLaw:  # noqa: ARG002 - the same for all sizes
        """What the function says."""
        return GivenLaw(self.function)


def _description(part: object) -> str:
    """Return a text that changes with the code of a function and with the plain values it was made with."""
    if isinstance(part, CodeType):
        return f"{part.co_code!r}{part.co_names}{_description(part.co_consts)}"
    if isinstance(part, partial):
        return _description((part.func, *part.args, *part.keywords.items()))
    if isinstance(part, tuple | frozenset):
        texts = [_description(member) for member in part]
        return f"({','.join(sorted(texts) if isinstance(part, frozenset) else texts)})"
    if hasattr(part, "__code__"):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]  # type: ignore[attr-defined]
        return _description((part.__code__, *(part.__defaults__ or ()), *cells))  # type: ignore[attr-defined]
    plain = part is None or isinstance(part, bool | int | float | complex | str | bytes)
    return repr(part) if plain else type(part).__qualname__
