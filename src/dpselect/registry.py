"""One record for each mechanism. The command line, the explorer, pools, figures and documents read it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from dpselect.mechanisms import (
    GEM,
    CombinedGEM,
    HeterogeneousNoisyMax,
    Mechanism,
    ModifiedGEM,
    NoisyMax,
    RandomizedResponse,
    RandomStopping,
    TopShare,
    Uniform,
)
from dpselect.unsafe import NaiveHeterogeneousNoisyMax


@dataclass(frozen=True, kw_only=True)
class Record:
    """What to know about a mechanism without running it. Call the record to make the mechanism.

    Example:
        >>> import dpselect as dps
        >>> record = dps.MECHANISMS["mgem"]
        >>> record.label, record(epsilon=1.0)
        ('modified GEM', GEM(epsilon=1.0, beta=0.05, tilt=-1.0, noise='exponential'))
    """

    name: str
    """The short name, for the command line and for tables."""
    label: str
    """The name in words, for the explorer and for documents."""
    symbol: str
    """The paper's abbreviation, for figures."""
    description: str
    constructor: Callable[..., Mechanism]
    """Takes ε, with or without its name, and further fields as keywords."""
    parameters: tuple[str, ...] = ()
    """The public parameters that you may want to set."""
    is_private: bool = True
    color: str

    @property
    def family(self) -> type[Mechanism]:
        """The class: mechanisms that differ only in parameters are one family."""
        return type(self.constructor(epsilon=1.0))

    @property
    def has_slow_pmf(self) -> bool:
        """Whether ``pmf`` is a quadrature that takes milliseconds."""
        return self.family in {RandomStopping, NaiveHeterogeneousNoisyMax}

    def __call__(self, *epsilon: float, **parameters: Any) -> Mechanism:
        """Return the mechanism with these parameters."""
        return self.constructor(*epsilon, **parameters)


def _uniform(epsilon: float = 0.0) -> Uniform:  # noqa: ARG001
    """Return :class:`Uniform`. The budget is unused; all records take one."""
    return Uniform()


def _by_name(*records: Record) -> Mapping[str, Record]:
    return MappingProxyType({record.name: record for record in records})


# The colours of Okabe and Ito (2008), which people with any colour vision can tell apart, without their
# yellow, which is too faint on white. Greys mark mechanisms that do not compete.
MECHANISMS: Mapping[str, Record] = _by_name(
    Record(
        name="heterogeneous-rnm",
        label="heterogeneous noisy max",
        symbol="heterogeneous noisy max",
        description="noisy max with noise that fits each candidate; the default",
        constructor=HeterogeneousNoisyMax,
        color="#d6007f",
    ),
    Record(
        name="kept-rnm",
        label="heterogeneous noisy max, keep 0 to 0.25",
        symbol="keep 0 to 0.25",
        description="the same, for candidates in a range of sensitivities",
        constructor=partial(HeterogeneousNoisyMax, keep=(0.0, 0.25)),
        parameters=("keep",),
        color="#7b3294",
    ),
    Record(
        name="rnm",
        label="noisy max",
        symbol="RNM",
        description="report noisy max",
        constructor=NoisyMax,
        color="#000000",
    ),
    Record(
        name="em",
        label="exponential mechanism",
        symbol="EM",
        description="noisy max with Gumbel noise",
        constructor=partial(NoisyMax, noise="gumbel"),
        color="#666666",
    ),
    Record(
        name="tilted-rnm",
        label="tilted noisy max",
        symbol="tilted RNM",
        description="noisy max with offsets in proportion to sensitivities",
        constructor=partial(NoisyMax, tilt=1.0),
        parameters=("tilt", "beta"),
        color="#7f5f00",
    ),
    Record(
        name="gem",
        label="GEM",
        symbol="GEM",
        description="generalised exponential mechanism",
        constructor=GEM,
        parameters=("beta",),
        color="#0072b2",
    ),
    Record(
        name="mgem",
        label="modified GEM",
        symbol="mGEM",
        description="GEM with the opposite tilt",
        constructor=ModifiedGEM,
        parameters=("beta",),
        color="#d55e00",
    ),
    Record(
        name="tilted-gem",
        label="tilted GEM",
        symbol="tilted GEM",
        description="GEM with any tilt",
        constructor=partial(GEM, tilt=2.0),
        parameters=("tilt", "beta"),
        color="#5e3c99",
    ),
    Record(
        name="rs",
        label="random stopping",
        symbol="RSᵧ",
        description="the best of a random number of noisy draws",
        constructor=RandomStopping,
        parameters=("gamma",),
        color="#cc79a7",
    ),
    Record(
        name="rs-improved",
        label="improved random stopping",
        symbol="improved RSᵧ",
        description="random stopping, η = 0",
        constructor=partial(RandomStopping, eta=0.0),
        parameters=("gamma",),
        color="#56b4e9",
    ),
    Record(
        name="rs-exponential",
        label="random stopping with exponential noise",
        symbol="RSᵧ, exponential",
        description="random stopping with exponential in place of Laplace noise",
        constructor=partial(RandomStopping, noise="exponential"),
        parameters=("gamma",),
        color="#882255",
    ),
    Record(
        name="rs-improved-exponential",
        label="improved random stopping with exponential noise",
        symbol="improved RSᵧ, exponential",
        description="random stopping, η = 0, with exponential noise",
        constructor=partial(RandomStopping, eta=0.0, noise="exponential"),
        parameters=("gamma",),
        color="#117a8b",
    ),
    Record(
        name="combined-gem",
        label="combined GEM",
        symbol="combined GEM",
        description="GEM or modified GEM, chosen privately",
        constructor=CombinedGEM,
        parameters=("beta",),
        color="#009e73",
    ),
    Record(
        name="top-share",
        label="top share",
        symbol="top share",
        description="from public weights, or from those of the best share; for one person's row",
        constructor=TopShare,
        color="#44aa99",
    ),
    Record(
        name="krr",
        label="randomised response",
        symbol="kRR",
        description="k-ary randomised response",
        constructor=RandomizedResponse,
        color="#e69f00",
    ),
    Record(
        name="uniform",
        label="random",
        symbol="random",
        description="a candidate at random",
        constructor=_uniform,
        color="#555555",
    ),
)
"""The private mechanisms by short name, without those of :mod:`dpselect.unsafe`."""

UNSAFE: Mapping[str, Record] = _by_name(
    Record(
        name="rnmh",
        label="naive noisy max (not private)",
        symbol="naive noisy max",
        description="the paper's RNMH: noise in proportion to each sensitivity; not private",
        constructor=NaiveHeterogeneousNoisyMax,
        is_private=False,
        color="#8a8a8a",
    ),
)
"""The mechanisms without a guarantee, for audits and figures."""


def default_mechanism(*, sensitivities: bool) -> tuple[Record, str]:
    """Return the mechanism for a table with or without sensitivities, if none is named, and why.

    Example:
        >>> default_mechanism(sensitivities=False)[0](1.0)
        TopShare(epsilon=1.0, share=None)
    """
    if sensitivities:
        return MECHANISMS["heterogeneous-rnm"], "there are sensitivities"
    return MECHANISMS["top-share"], "there are no sensitivities, so each row must be about one person"
