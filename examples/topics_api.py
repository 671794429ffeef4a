"""Compute the ε of the browsers' Topics API from its published numbers, and what public weights would add.

Once per epoch, a browser gives a site one topic: with a probability of 5 % a random one of 469, and otherwise
one of the user's five best. This is top share with equal weights. The number below is for one unfiltered topic
of one epoch on one site. The API also filters topics by what the caller has observed, and gives topics of
several epochs. Both are beyond the formula.

The popularity of topics and the users' interests are made up. Popularity falls like 1/rank (Zipf's law), and a
user's interest in a topic is its popularity times a lognormal taste. How much weights add depends on such
numbers.
"""

import math

import numpy as np

import dpselect as dps

TOPICS, BEST, RANDOM = 469, 5, 0.05
SHARES = np.geomspace(0.005, 0.5, 12)


def main() -> None:
    """Print ε, and how often a released topic is not one of the user's best, with equal and with public weights."""
    epsilon = math.log1p((1 / RANDOM - 1) * TOPICS / BEST)
    print(f"one unfiltered topic of one epoch on one site: ε = {epsilon:.2f}")

    popularity = 1 / np.arange(1, TOPICS + 1)
    interests = popularity * np.random.default_rng(8).lognormal(0, 1.5, size=(1300, TOPICS))
    public, private = interests[:300], interests[300:]

    print(f"the released topic is not one of the user's {BEST} best (made-up users):")
    published = dps.TopShare(epsilon, share=BEST / TOPICS)
    print(f"  ε = {epsilon:.2f}, equal weights, as published: {missed(published, private, 1.0):.1%}")
    for part in (1.0, 0.8, 0.6):
        choices = [dps.TopShare(part * epsilon, share=share) for share in SHARES]
        mechanism = min(choices, key=lambda choice: missed(choice, public, popularity))
        print(f"  ε = {part * epsilon:.2f}, popularity as weights: {missed(mechanism, private, popularity):.1%}")


def missed(mechanism: dps.TopShare, interests: np.ndarray, weights: np.ndarray | float) -> float:
    """Return the mean probability that the pick is not one of a user's best topics."""
    among_best = interests >= np.sort(interests, axis=1)[:, -BEST, None]
    return 1.0 - float((mechanism.pmf(interests, weights=weights) * among_best).sum(axis=1).mean())


if __name__ == "__main__":
    main()
