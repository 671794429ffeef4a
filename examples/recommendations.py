"""Make one private recommendation for each user, in a way that is safe to compute more than once.

Scores are clipped to public ranges, so the widths of the ranges are true sensitivities. The release key makes
the computation repeatable: a task that runs again returns the same items and does not publish a second noisy
answer.
"""

import secrets

import numpy as np

import dpselect as dps

EPSILON = 2.0


def main() -> None:
    """Print the recommendations for a thousand users, and show that a second run publishes nothing new."""
    rng = np.random.default_rng(3)
    items = 200
    popularity = np.sort(rng.pareto(2.0, size=items))[::-1]
    users = [f"user-{number}" for number in range(1000)]
    taste = rng.lognormal(0, 0.6, size=(len(users), items)) * popularity

    low, high = np.zeros(items), 2.5 * popularity + 0.1  # public ranges, fixed in advance
    scores = np.clip(taste, low, high)
    sensitivities = high - low

    key = secrets.token_bytes(32)  # keep it secret, and use it for this release only
    randomness = dps.Randomness.keyed(key, users)
    mechanism = dps.ModifiedGEM(epsilon=EPSILON)
    picks = mechanism.select(scores, sensitivities, randomness=randomness)
    again = mechanism.select(scores[::-1], sensitivities, randomness=dps.Randomness.keyed(key, users[::-1]))
    same = (picks == again[::-1]).all()
    print(f"{len(picks)} recommendations at ε = {EPSILON:g} each; a second run gives the same picks: {same}")

    regret = (scores.max(axis=1) - scores[np.arange(len(users)), picks]).mean()
    rivals = {"modified GEM": mechanism, "noisy max": dps.NoisyMax(epsilon=EPSILON), "random": dps.Uniform()}
    print(f"mean regret of these picks: {regret:.2f}; exact expectation for each mechanism:")
    for label, rival in rivals.items():
        print(f"  {label}: {dps.expected_error(rival, scores, sensitivities, power=1).mean():.2f}")


if __name__ == "__main__":
    main()
