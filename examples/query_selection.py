"""Pick the next query to measure in a synthetic-data generator that adapts to the workload, as AIM does.

Such a generator keeps a model of the data and repeats: pick the query whose answer the model gets most wrong,
measure it with noise, fit the model again. A query's score is its weight times its error; the model comes
from earlier releases, so replacing one person moves the error by at most 1 and the score by the weight.
Weights differ: a query counts for more the more of the workload it covers. Noisy max adds noise for the
heaviest query to all of them.
"""

from itertools import combinations

import numpy as np

import dpselect as dps

EPSILON = 0.05
SIZES = (2, 3, 4, 5, 6, 8)


def main() -> None:
    """Print the query picked and what each mechanism would have achieved."""
    rng = np.random.default_rng(8)
    people = 1000
    columns = [rng.integers(0, size, people) for size in SIZES]
    columns[3] = (columns[1] + (rng.random(people) < 0.8)) % SIZES[3]  # depends on column 1: worth measuring
    columns[5] = (columns[4] + 2 * rng.integers(0, 4, people)) % SIZES[5]
    model = [_measured(column, size, rng) for column, size in zip(columns, SIZES, strict=True)]  # released before

    queries = [*combinations(range(len(SIZES)), 2), *combinations(range(len(SIZES)), 3)]
    weights = [sum(len(set(query) & set(other)) for other in queries) / len(queries) for query in queries]

    scores = [
        weight * _error(query, columns, model) for query, weight in zip(queries, weights, strict=True)
    ]  # private
    sensitivities = weights  # public

    mechanism = dps.NoisyMax(epsilon=EPSILON, tilt=-1.0)
    print(
        "measure next:", queries[mechanism.select(scores, sensitivities)], f"(ε = {mechanism.guarantee.epsilon:g})"
    )

    print("expected shortfall from the best query, exactly:")
    rivals = {
        "exponential mechanism": dps.NoisyMax(epsilon=EPSILON, noise="gumbel"),
        "noisy max": dps.NoisyMax(epsilon=EPSILON),
        "tilted noisy max": mechanism,
        "GEM": dps.GEM(epsilon=EPSILON),
        "modified GEM": dps.ModifiedGEM(epsilon=EPSILON),
    }
    for label, rival in rivals.items():
        print(f"  {label}: {dps.expected_error(rival, scores, sensitivities, power=1):.1f}")


def _measured(column: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the shares of a column's values, as an earlier round measured them with noise."""
    noisy = np.maximum(1.0, np.bincount(column, minlength=size) + rng.laplace(scale=10.0, size=size))
    return noisy / noisy.sum()


def _error(query: tuple[int, ...], columns: list[np.ndarray], shares: list[np.ndarray]) -> float:
    """Return half the L1 distance between the query's true table and the model's, which has independent columns."""
    sizes = [SIZES[column] for column in query]
    truth = np.zeros(sizes)
    np.add.at(truth, tuple(columns[column] for column in query), 1.0)
    people = len(columns[0])
    model = np.full(sizes, float(people))
    for axis, column in enumerate(query):
        model *= shares[column].reshape([-1 if place == axis else 1 for place in range(len(query))])
    return float(np.abs(truth - model).sum() / 2)


if __name__ == "__main__":
    main()
