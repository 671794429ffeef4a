"""How each policy is named and drawn.

One that picks by a mechanism looks as the mechanism does everywhere. The others have colours that no mechanism has.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from experiments.bandit.policies import MECHANISMS
from experiments.mechanisms import STYLES, Style

__all__ = ["POLICY_STYLES"]

_public = partial(Style, private=False)

POLICY_STYLES: Mapping[str, Style] = MappingProxyType(
    {
        **{name: STYLES[name] for name in MECHANISMS},
        "private-ucb": Style(
            label="UCB on private means", description="its bonus covers the noise too", color="#00b8d4", marker="X"
        ),
        "ucb": _public(
            label="UCB", description="as printed: α = √2, ln T", color="#a50f15", marker="x", dashes=(6, 2)
        ),
        "greedy": _public(
            label="UCB, α = 0",
            description="the arm with the larger mean so far",
            color="#c8a165",
            marker="+",
            dashes=(6, 2),
        ),
        "discounted-ucb": _public(
            label="discounted UCB",
            description="forgets old rewards",
            color="#4040d9",
            marker="<",
            dashes=(3, 1, 1, 1),
        ),
        "thompson": _public(
            label="Thompson sampling",
            description="draws from the posterior",
            color="#66a61e",
            marker=">",
            dashes=(2, 1),
        ),
        "oracle": _public(
            label="oracle", description="knows the better arm", color="#6b6b00", marker="", dashes=(1, 2.5)
        ),
    }
)
"""In the order of figures and tables."""
