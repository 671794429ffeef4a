"""Let the released picks of early users teach the weights of later ones, at no cost.

A row is about one user, so top share needs no sensitivities. Nothing is known about the items at first, and the
first users pick with equal weights. Their picks are released, so they are public, and weights computed from
them cost nothing. Every user picks once and pays ε once. Who picks in which round is decided at random, not by
anyone's data.
"""

import numpy as np

import dpselect as dps

EPSILON, ITEMS, USERS = 4.0, 200, 2000


def main() -> None:
    """Print the error of both rounds. The data are made up, so the errors may be shown."""
    rng = np.random.default_rng(6)
    popularity = rng.permutation(np.linspace(0, 1, ITEMS)) ** 4  # nobody knows it
    scores = np.clip(popularity + rng.normal(0, 0.15, size=(USERS, ITEMS)), 0, 1)
    early, late = scores[: USERS // 2], scores[USERS // 2 :]

    mechanism = dps.TopShare(EPSILON)
    first = mechanism.select(early)  # released
    weights = dps.advice.weights_from_picks(first, mechanism, candidates=ITEMS)  # from released picks only
    second = mechanism.select(late, weights=weights)
    print(f"{len(first)} picks in each of two rounds; every user pays ε = {EPSILON:g}, once")

    print("mean squared error of the picks, and its exact expectation:")
    for name, rows, picks, used in (("first", early, first, 1.0), ("second", late, second, weights)):
        lost = (rows.max(axis=1) - rows[np.arange(len(rows)), picks]) ** 2
        expected = dps.expected_error(mechanism, rows, weights=used).mean()
        print(f"  {name} round: {lost.mean():.3f} ({expected:.3f})")
    without = dps.expected_error(mechanism, late).mean()
    print(f"  second round, if it had learned nothing: {without:.3f}")


if __name__ == "__main__":
    main()
