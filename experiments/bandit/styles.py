"""How each policy is named and drawn: private ones as their mechanism is everywhere, the others in greys."""

from types import MappingProxyType

from experiments.mechanisms import STYLES, Style

__all__ = ["POLICY_STYLES"]

POLICY_STYLES = MappingProxyType(
    {
        **{name: STYLES[name] for name in ("rnm", "rs", "gem", "mgem", "combined-gem", "krr")},
        "private-ucb": Style(
            label="UCB on private means", description="its bonus covers the noise too", color="#56b4e9", marker="*"
        ),
        "uniform": STYLES["uniform"],
        "ucb": Style(
            label="UCB",
            description="as printed: α = √2, ln T",
            color="#6e6e6e",
            marker="x",
            dashes=(6, 2),
            private=False,
        ),
        "greedy": Style(
            label="UCB, α = 0",
            description="the arm with the larger mean so far",
            color="#b0b0b0",
            marker="+",
            dashes=(6, 2),
            private=False,
        ),
        "discounted-ucb": Style(
            label="discounted UCB",
            description="forgets old rewards",
            color="#6e6e6e",
            marker="<",
            dashes=(3, 1, 1, 1),
            private=False,
        ),
        "thompson": Style(
            label="Thompson sampling",
            description="draws from the posterior",
            color="#9a9a9a",
            marker=">",
            dashes=(2, 1),
            private=False,
        ),
        "oracle": Style(
            label="oracle",
            description="knows the better arm",
            color="#333333",
            marker="",
            dashes=(1, 2.5),
            private=False,
        ),
    }
)
"""In the order of figures and tables."""
