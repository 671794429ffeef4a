"""Pick the best of several models on private test data, one of them evaluated on few people.

A model's score is minus its mean loss over the people it can be evaluated on. One person moves the mean of n losses
in [0, 1] by at most 1/n, so the score of a model for few people is more sensitive than that of one for all.
"""

import numpy as np

import dpselect as dps

EPSILON = 1.0


def main() -> None:
    """Print the pick, its guarantee, and, since the data are made up, what it was worth."""
    rng = np.random.default_rng(5)
    people = {"baseline": 4000, "small forest": 4000, "large forest": 4000, "linear": 1500, "needs a scan": 120}
    mean_loss = {"baseline": 0.50, "small forest": 0.31, "large forest": 0.28, "linear": 0.35, "needs a scan": 0.26}
    losses = {name: rng.binomial(1, mean_loss[name], size=n) for name, n in people.items()}

    scores = [-losses[name].mean() for name in people]  # private
    sensitivities = [1 / n for n in people.values()]  # public

    mechanism = dps.GEM(epsilon=EPSILON)
    pick = list(people)[mechanism.select(scores, sensitivities)]
    print(f"picked: {pick} (ε = {mechanism.guarantee.epsilon:g})")

    print("chance of each model, if the data were public:")
    for label, rival in (("GEM", mechanism), ("noisy max", dps.NoisyMax(epsilon=EPSILON))):
        chances = rival.pmf(scores, sensitivities)
        shown = ", ".join(f"{name} {chance:.2f}" for name, chance in zip(people, chances, strict=True))
        print(f"  {label}: {shown}")


if __name__ == "__main__":
    main()
