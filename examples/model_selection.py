"""Select the best of several models on private test data, when one model can be evaluated on only a few people.

A model's score is minus its mean loss over the people on whom it can be evaluated. One person changes the mean
of n losses in [0, 1] by at most 1/n. A model that is evaluated on fewer people therefore has a more sensitive
score.
"""

import numpy as np

import dpselect as dps

EPSILON = 1.0


def main() -> None:
    """Print the pick and its guarantee. The data are made up, so also print the probability of each model."""
    rng = np.random.default_rng(5)
    people = {"baseline": 4000, "small forest": 4000, "large forest": 4000, "linear": 1500, "needs a scan": 120}
    mean_loss = {"baseline": 0.50, "small forest": 0.31, "large forest": 0.28, "linear": 0.35, "needs a scan": 0.26}
    losses = {name: rng.binomial(1, mean_loss[name], size=n) for name, n in people.items()}

    scores = [-losses[name].mean() for name in people]  # private
    sensitivities = [1 / n for n in people.values()]  # public

    mechanism = dps.GEM(epsilon=EPSILON)
    pick = list(people)[mechanism.select(scores, sensitivities)]
    print(f"picked: {pick} (ε = {mechanism.guarantee.epsilon:g})")

    print("probability of each model (not private; the data are made up):")
    for label, rival in (("GEM", mechanism), ("noisy max", dps.NoisyMax(epsilon=EPSILON))):
        probabilities = rival.pmf(scores, sensitivities)
        shown = ", ".join(f"{name} {p:.2f}" for name, p in zip(people, probabilities, strict=True))
        print(f"  {label}: {shown}")


if __name__ == "__main__":
    main()
