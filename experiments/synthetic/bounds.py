"""Utility bounds of GEM and RNM, next to what their exact distributions achieve."""

from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib import rcParams
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing, utility_bounds
from experiments.arrays import BoolArray, FloatArray
from experiments.curves import number
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import BETA, STYLES, build
from experiments.scenarios import SCENARIOS, SEED, Scenario, titled
from experiments.tables import Tables, from_rows, unique, where
from experiments.trials import epsilon_grid, scenario_tasks

__all__ = ["BOUNDS"]

TILTS = (-2.0, -1.0, 0.0, 1.0, 2.0)
LAYOUTS = 400
SHOWN = titled(2, 5)
"""The scenarios whose bounds are drawn."""
LARGEST_EPSILON = 10.001
"""Up to here it matters which mechanism is better. Beyond, all errors are small."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *scenario_tasks("failures", titled(*SCENARIOS), partial(_failures, effort)),
        *scenario_tasks("promises", SHOWN, partial(_promises, effort)),
        *scenario_tasks("scenarios", titled(*SCENARIOS), partial(_own_conditions, effort)),
        Task(label="random layouts", table="conditions", compute=_conditions),
    ]


def _failures(effort: Effort, scenario: Scenario) -> pa.Table:
    """Return the largest exact probability over twenty trials that the pick falls below its published bound."""
    scenario = scenario.first(20)
    rows = [
        (scenario.title, tilt, float(epsilon), float(_failure(scenario, float(epsilon), tilt).max()))
        for tilt in TILTS
        for epsilon in epsilon_grid(effort)
    ]
    return from_rows(("scenario", "tilt", "epsilon", "failure"), rows)


def _failure(scenario: Scenario, epsilon: float, tilt: float) -> FloatArray:
    law = dps.GEM(epsilon=epsilon, tilt=tilt, beta=BETA).pmf(scenario.scores, scenario.sensitivities)
    floors = utility_bounds.gem_floors(
        scenario.scores, scenario.sensitivities, epsilon=epsilon, tilt=tilt, beta=BETA
    )
    return np.asarray((law * (scenario.scores < floors)).sum(axis=-1))


def _promises(effort: Effort, scenario: Scenario) -> pa.Table:
    """Return the published bounds and the exact 5th percentile of the picked score, for the first trial."""
    scores, sensitivities = scenario.scores[0], scenario.sensitivities
    rows = []
    for epsilon in map(float, epsilon_grid(effort)):
        slack = 2 * np.log(scores.size / BETA) / epsilon
        floors = utility_bounds.gem_floors(scores, sensitivities, epsilon=epsilon, beta=BETA)
        bounds = {"gem": floors[0], "rnm": scores.max() - slack * sensitivities.max()}
        for name, bound in bounds.items():
            kept = scores.max() - utility_bounds.error_quantile(
                build(name, epsilon), scores, sensitivities, 1 - BETA
            )
            rows.append((scenario.title, name, epsilon, float(bound), float(kept), float(scores.min())))
    return from_rows(("scenario", "mechanism", "epsilon", "bound", "percentile", "worst"), rows)


def _conditions() -> pa.Table:
    """Return whether GEM's bound is worse than others' on random layouts, and what the paper's conditions say.

    GEM's bound is a maximum over all candidates; ``alone`` is the bound read at the best candidate.
    """
    random = np.random.default_rng([SEED, 10])
    rows = []
    for _ in range(LAYOUTS):
        k = int(random.integers(2, 101))
        scores = random.uniform(size=k)
        sensitivities = 10.0 ** random.uniform(-3, 0, size=k)
        epsilon = float(10.0 ** random.uniform(-1, 2))
        given = {"epsilon": epsilon, "beta": BETA}
        floors = utility_bounds.gem_floors(scores, sensitivities, **given)
        best, slack = int(scores.argmax()), 2 * np.log(k / BETA) / epsilon
        alone = scores[best] - 2 * slack * sensitivities[best]
        failure = float((build("gem", epsilon).pmf(scores, sensitivities) * (scores < floors)).sum())
        rows.append(
            (
                k,
                epsilon,
                bool(utility_bounds.published_gem_worse_than_noisy_max(scores, sensitivities)),
                bool(utility_bounds.gem_worse_than_noisy_max(scores, sensitivities, **given)),
                bool(alone < scores[best] - slack * sensitivities.max()),
                bool(utility_bounds.published_gem_worse_than_uniform(scores, sensitivities, **given)),
                bool(utility_bounds.gem_worse_than_uniform(scores, sensitivities, **given)),
                bool(alone < scores.min()),
                failure,
            )
        )
    comparisons = [
        name.format(other)
        for other in ("noisy_max", "uniform")
        for name in ("published_worse_than_{}", "worse_than_{}", "worse_than_{}_alone")
    ]
    return from_rows(("candidates", "epsilon", *comparisons, "failure"), rows)


def _own_conditions(effort: Effort, scenario: Scenario) -> pa.Table:
    """Return the paper's conditions, what the bounds say, and the exact errors of some trials of its scenario."""
    part = scenario.first(20)
    rows = list[tuple[str | float | bool, ...]]()
    for epsilon in map(float, epsilon_grid(effort)):
        given = {"epsilon": epsilon, "beta": BETA}
        errors = {
            name: dps.expected_error(build(name, epsilon), part.scores, part.sensitivities)
            for name in ("gem", "rnm")
        }
        columns = (
            utility_bounds.published_gem_worse_than_noisy_max(part.scores, part.sensitivities),
            utility_bounds.gem_worse_than_noisy_max(part.scores, part.sensitivities, **given),
            utility_bounds.published_gem_worse_than_uniform(part.scores, part.sensitivities, **given),
            utility_bounds.gem_worse_than_uniform(part.scores, part.sensitivities, **given),
        )
        rows.extend(
            (part.title, epsilon, *map(bool, flags), float(gem), float(rnm))
            for flags, gem, rnm in zip(zip(*columns, strict=True), errors["gem"], errors["rnm"], strict=True)
        )
    comparisons = [f"{word}worse_than_{other}" for other in ("noisy_max", "uniform") for word in ("published_", "")]
    return from_rows(("scenario", "epsilon", *comparisons, "gem", "rnm"), rows)


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=1, columns=3, heights=(3,), width=3.9, aligned=False)
    titles = unique(data["promises"], "scenario")
    for title, panel in zip(titles, panels[0], strict=False):
        panel.set_title(title)
        for name in ("rnm", "gem"):
            curve = where(data["promises"], scenario=title, mechanism=name)
            style = STYLES[name]
            panel.plot(curve["epsilon"], curve["percentile"], color=style.color, label=f"{style.label}, exact")
            panel.plot(
                curve["epsilon"], curve["bound"], ":", color=style.color, linewidth=2, label=f"{style.label}, bound"
            )
        promises = where(data["promises"], scenario=title)
        worst, top = promises["worst"][0].as_py(), max(promises["percentile"].to_pylist())
        panel.axhline(worst, color=drawing.OTHER[0], linewidth=1.2, label="lowest score")
        panel.set(
            ylim=(worst - 0.6 * (top - worst), top + 0.15 * (top - worst)),
            ylabel="score",
            xlabel="privacy budget ε",
            xscale="log",
        )
        drawing.plain_numbers(panel.xaxis)
    panels[0, 0].legend(loc="center left", fontsize=8.5)
    right = panels[0, 2]
    for tilt in TILTS:
        rows = where(data["failures"], tilt=tilt)
        epsilons = np.unique(rows["epsilon"].to_numpy())
        worst_case = [max(where(rows, epsilon=epsilon)["failure"].to_pylist()) for epsilon in epsilons]
        # A colour for each size of the tilt, dots for negative ones.
        look = {"color": drawing.OTHER[round(abs(tilt))], "linestyle": ":" if tilt < 0 else "-"}
        right.plot(epsilons, np.maximum(worst_case, 1e-9), **look, label=f"tilt {tilt:g}".replace("-", "−"))
    right.axhline(BETA, color=rcParams["axes.edgecolor"], linewidth=1)
    right.text(0.011, BETA * 1.15, f"β = {BETA:g}: what the bound allows", va="bottom", fontsize=8.5)
    right.set(
        title="Probability of missing the bound",
        xlabel="privacy budget ε",
        xscale="log",
        yscale="log",
        ylim=(1e-5, 0.2),
    )
    for axis in (right.xaxis, right.yaxis):
        drawing.plain_numbers(axis)
    right.legend(fontsize=8.5)
    return figure


def _numbers(data: Tables) -> dict[str, str]:
    """Return the largest ε at which each bound is below the lowest score, and the largest chance of a miss."""
    found = {"failure": f"{max(data['failures']['failure'].to_pylist()):.2g}"}
    for title in unique(data["promises"], "scenario"):
        for name in ("gem", "rnm"):
            rows = where(data["promises"], scenario=title, mechanism=name).to_pylist()
            last = max(row["epsilon"] for row in rows if row["bound"] < row["worst"])
            found[f"{name}_{title.split(':')[0][-1]}"] = f"{last:.2g}"
    return found


def _check_bound(data: Tables) -> Finding:
    failures = data["failures"]["failure"].to_numpy()
    random = data["conditions"]["failure"].to_numpy()
    proper = where(data["failures"], tilt=1.0)["failure"].to_numpy()
    return judge(
        {
            "the bound for any t fails with probability at most β": bool(failures.max() <= BETA),
            "GEM’s bound fails with probability at most β": bool(max(proper.max(), random.max()) <= BETA),
        },
        f"The largest exact probability of falling below the bound is {failures.max():.4f} over {failures.size} "
        f"settings (eight scenarios, tilts from −2 to 2, all ε), {proper.max():.4f} for GEM, and "
        f"{random.max():.4f} over {random.size} random layouts. The bound allows β = {BETA}.",
        "The bound is loose: half of β would suffice, since exponential noise trails by at most $\\log((k−1)/2β)$.",
    )


def _mask(table: pa.Table, name: str) -> BoolArray:
    return np.asarray(table[name].to_numpy(zero_copy_only=False))


def _by_scenario(data: Tables) -> dict[str, pa.Table]:
    """Return the comparisons in each of the paper's scenarios, by its number."""
    titles = unique(data["scenarios"], "scenario")
    return {title.split(":")[0][-1]: where(data["scenarios"], scenario=title) for title in titles}


def _right_in_scenarios(data: Tables, other: str) -> str:
    """Write in how many of the cases that meet the printed condition the bound is worse, for each scenario."""
    said = []
    for place, table in _by_scenario(data).items():
        published, truth = _mask(table, f"published_worse_than_{other}"), _mask(table, f"worse_than_{other}")
        share = f"{truth[published].mean():.0%}" if published.any() else "never met"
        said.append(f"{share} in scenario {place}")
    return ", ".join(said)


def _check_condition(other: str, name: str, data: Tables) -> Finding:
    published, truth, alone = (
        _mask(data["conditions"], column.format(other))
        for column in ("published_worse_than_{}", "worse_than_{}", "worse_than_{}_alone")
    )
    own = [
        _mask(data["scenarios"], column.format(other)) for column in ("published_worse_than_{}", "worse_than_{}")
    ]
    necessary = bool(published[truth].all() and own[0][own[1]].all())
    sufficient = "if the condition holds, GEM’s bound is worse"
    return judge(
        {
            sufficient: bool(truth[published].all() and own[1][own[0]].all()),
            "the condition is exact for the bound read at the best candidate alone": bool(
                (published == alone).all()
            ),
        },
        "On the paper’s scenarios (20 trials, all ε), where the condition holds GEM’s bound is worse than "
        f"{name} in this share of the cases: {_right_in_scenarios(data, other)}. On {truth.size} random layouts "
        f"the condition holds {int(published.sum())} times, and the bound is worse in "
        f"{int((published & truth).sum())} of these and in {int((truth & ~published).sum())} others. Read at the "
        f"best candidate alone, it is worse in {int((published & alone).sum())} of these and in "
        f"{int((alone & ~published).sum())} others.",
        "The condition looks only at the best candidate, but GEM’s bound is a maximum over all candidates. A less "
        "sensitive candidate that is almost as good improves the bound (docs/theory/utility-bounds.md).",
        instead={sufficient: "the condition is not sufficient" + (", though it is necessary" if necessary else "")},
    )


def _right(data: Tables) -> dict[str, dict[str, float]]:
    """Return for each scenario how often a rule names the better one of RNM and GEM, for ε up to 10, by rule."""
    rules = {"condition": "published_worse_than_noisy_max", "bounds": "worse_than_noisy_max"}
    found: dict[str, dict[str, float]] = {}
    for place, table in _by_scenario(data).items():
        part = table.filter(table["epsilon"].to_numpy() <= LARGEST_EPSILON)
        worse = part["gem"].to_numpy() > part["rnm"].to_numpy()
        found[place] = {name: float((_mask(part, column) == worse).mean()) for name, column in rules.items()}
        found[place]["always GEM"] = float(1 - worse.mean())
    return found


def _check_guide(data: Tables) -> Finding:
    right = _right(data)
    means = {
        name: float(np.mean([shares[name] for shares in right.values()])) for name in next(iter(right.values()))
    }
    fixed = max(means["always GEM"], 1 - means["always GEM"])
    wrong = {
        name: [place for place, shares in right.items() if shares[name] <= 0.5] for name in ("condition", "bounds")
    }
    said = {name: f"in every scenario the {name} must name the better one in most cases" for name in wrong}
    shown = {name: ", ".join(f"{shares[name]:.0%}" for shares in right.values()) for name in wrong}
    two = {row["epsilon"]: row for row in _by_scenario(data)["2"].to_pylist()}
    at_one = two[min(two, key=lambda epsilon: abs(epsilon - 1))]
    prefers = all(row["worse_than_noisy_max"] and row["published_worse_than_noisy_max"] for row in two.values())
    return judge(
        {
            "on average both name the better one more often than a fixed choice": min(
                means["condition"], means["bounds"]
            )
            > fixed,
            **{said[name]: not places for name, places in wrong.items()},
        },
        "Share of the cases (20 trials, ε up to 10) in which the condition names the better one of RNM and GEM, in "
        f"scenarios {', '.join(right)}: {shown['condition']}; the bounds: {shown['bounds']}. On average "
        f"{means['condition']:.0%} and {means['bounds']:.0%}; the better fixed choice is right in {fixed:.0%}. "
        + ("In scenario 2 both prefer RNM at every ε, though " if prefers else "In scenario 2, ")
        + f"GEM’s error at ε = {at_one['epsilon']:g} is {number(at_one['gem'])} and RNM’s {number(at_one['rnm'])}.",
        "The condition reads GEM’s bound at the best candidate alone, which says more about the error than the "
        "bound itself.",
        instead={
            said[
                name
            ]: f"the {name} {'names' if name == 'condition' else 'name'} the wrong one in at least half of "
            f"the cases in scenarios {', '.join(places)}"
            for name, places in wrong.items()
        },
    )


def _guides(data: Tables) -> Listing:
    """Return how conditions, bounds and errors compare in the paper's scenarios, for readers."""
    rows = []
    for (place, table), right in zip(_by_scenario(data).items(), _right(data).values(), strict=True):
        published, truth = (
            _mask(table, name) for name in ("published_worse_than_noisy_max", "worse_than_noisy_max")
        )
        met = f"{truth[published].mean():.0%}" if published.any() else "–"
        rows.append(
            [f"Scenario {place}", f"{published.mean():.0%}", met, *(f"{share:.0%}" for share in right.values())]
        )
    return Listing(
        caption="RNM or GEM, in the paper’s scenarios: how often the printed condition Δ_* > max Δ / 2 is met, how "
        "often GEM’s bound is then worse, and, for ε up to 10, how often the condition, the bounds and “always "
        "GEM” name the mechanism with the smaller exact error.",
        columns=["", "condition met", "of these, bound worse", "condition right", "bounds right", "GEM better"],
        rows=rows,
    )


BOUNDS = Experiment(
    name="utility-bounds",
    title="Utility bounds",
    caption=(
        "The bounds hold but are often vacuous: any pick meets a bound below the lowest score. In scenario 2 "
        "GEM’s is up to ε = {gem_2} and RNM’s up to ε = {rnm_2}, in scenario 5 up to ε = {gem_5} and {rnm_5}. "
        "Right: at all tilts GEM misses its bound with a probability of at most {failure}, where β = 0.05 is "
        "allowed."
    ),
    description=(
        "Left and middle: the score that RNM and GEM reach with probability 95 %, and the published bounds far "
        "below. Right: the exact probability that GEM’s pick falls below its bound, under β for all tilts."
    ),
    notes={
        "bounds": (
            "RNM: q* − 2 max Δ log(k/β)/ε; GEM: max_j {q_j − 4Δ_j log(k/β)/ε}; any t: utility_bounds.gem_floors"
        ),
        "scenarios": "left and middle: the first trial; right: the largest of 20 trials of all eight scenarios",
        "the paper’s scenarios": "20 trials of each (all trials are equal in scenarios 1 to 3), all ε",
        "random layouts": (
            f"{LAYOUTS}, of 2 to 100 candidates, uniform scores, Δ from 0.001 to 1, ε from 0.1 to 100"
        ),
        "mechanisms": f"β = {BETA}",
    },
    plan=_plan,
    draw=_draw,
    listings=lambda data: [_guides(data)],
    numbers=_numbers,
    claims=[
        Claim(
            id="G9",
            text="The utility bounds guide the choice between RNM and GEM.",
            check=_check_guide,
        ),
        Claim(
            id="U1",
            text=(
                "Bound for any t, and GEM’s bound $\\max_j \\{q_j − 4Δ_j \\log(k/β)/ε\\}$, are respected by the "
                "exact distribution at level 1−β."
            ),
            check=_check_bound,
        ),
        Claim(
            id="U2",
            text="GEM’s bound is worse than RNM’s when $Δ_* > \\max Δ / 2$.",
            check=partial(_check_condition, "noisy_max", "RNM’s"),
        ),
        Claim(
            id="U3",
            text="GEM’s bound is worse than uniform’s worst case when $Δ_* > (q_* − q_{−}) · ε / (4 \\log(k/β))$.",
            check=partial(_check_condition, "uniform", "the lowest score"),
        ),
    ],
)
