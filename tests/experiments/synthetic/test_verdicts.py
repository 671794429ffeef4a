"""Verdicts on tables with known outcomes: a table that contradicts a claim must be said to."""

import pyarrow as pa
import pytest

from experiments.ledger import Verdict
from experiments.scenarios import TITLES
from experiments.synthetic import EXPERIMENTS
from experiments.synthetic.layout_search import LAYOUTS

CHECKS = {claim.id: claim.check for experiment in EXPERIMENTS for claim in experiment.claims}
EPSILONS = (0.1, 1.0, 10.0, 100.0)
NAMES = ("rnm", "rs", "rs-improved", "gem", "mgem", "combined-gem", "krr", "uniform")


def curves(titles, **errors):
    """Return a table of errors, 1 at all ε in all scenarios unless said otherwise."""
    errors = {name.replace("_", "-"): values for name, values in errors.items()}
    return pa.table(
        {
            "scenario": [title for title in titles for _ in NAMES for _ in EPSILONS],
            "mechanism": [name for _ in titles for name in NAMES for _ in EPSILONS],
            "epsilon": [epsilon for _ in titles for _ in NAMES for epsilon in EPSILONS],
            "mean_squared_error": [
                value for _ in titles for name in NAMES for value in errors.get(name, [1.0] * len(EPSILONS))
            ],
        }
    )


ORDERS = {
    # The claimed order of errors at ε ≤ 1, from the lowest.
    "S1": (1, {"rs": 0.2, "mgem": 0.2, "rnm": 0.5, "uniform": 1.0, "gem": 2.0}),
    "S2": (2, {"gem": 0.2, "rnm": 0.5, "uniform": 1.0, "rs": 2.0, "mgem": 2.0}),
    "S4": (4, {"rs": 0.2, "mgem": 0.2, "rnm": 0.5, "uniform": 1.0, "gem": 2.0}),
    "S5": (5, {"gem": 0.2, "rnm": 0.5, "uniform": 1.0, "rs": 2.0, "mgem": 2.0}),
    "S6": (6, {"gem": 0.2, "rnm": 0.5, "uniform": 1.0, "rs": 2.0, "mgem": 2.0}),
}


def redrawn(*layouts):
    """Return errors with a table of layouts, each a table of errors."""
    tables = [
        layout.add_column(1, "layout", pa.array([place] * layout.num_rows)) for place, layout in enumerate(layouts)
    ]
    return {"errors": layouts[0], "redrawn": pa.concat_tables(tables)}


@pytest.mark.parametrize("id_", ORDERS)
def test_an_order_that_ends_at_some_epsilon_holds_up_to_it(id_):
    number, order = ORDERS[id_]
    in_all = " in all layouts" if id_ in {"S4", "S6"} else ""
    always = {name: [value] * 4 for name, value in order.items()}
    assert CHECKS[id_](redrawn(curves([TITLES[number]], **always))).words == f"holds{in_all}"
    crossing = always | {"rnm": [0.5, 0.5, 0.1, 0.1]}
    assert CHECKS[id_](redrawn(curves([TITLES[number]], **crossing))).words == f"holds{in_all} for ε ≤ 1"


@pytest.mark.parametrize("id_", ["S4", "S6"])
def test_an_order_in_a_random_layout_must_hold_in_most_layouts(id_):
    number, order = ORDERS[id_]
    good = curves([TITLES[number]], **{name: [value] * 4 for name, value in order.items()})
    bad = curves([TITLES[number]])
    assert CHECKS[id_](redrawn(good, good, bad)).words == "holds in 67% to 67% of the layouts"
    assert CHECKS[id_](redrawn(good, bad, bad)).verdict is Verdict.FAILS


@pytest.mark.parametrize("id_", ORDERS)
def test_an_order_that_is_the_other_way_round_does_not_hold(id_):
    number, order = ORDERS[id_]
    reverse = dict(zip(order, reversed(order.values()), strict=True))
    finding = CHECKS[id_](redrawn(curves([TITLES[number]], **{name: [v] * 4 for name, v in reverse.items()})))
    assert finding.verdict is Verdict.FAILS
    assert "for no ε" in finding.comment


def test_randomised_response_is_judged_at_large_epsilon_only():
    titles = [TITLES[number] for number in (4, 5, 6)]
    assert CHECKS["S12"]({"errors": curves(titles, krr=[2.0, 2.0, 0.5, 0.5])}).words == "holds for ε ≥ 10"
    assert CHECKS["S12"]({"errors": curves(titles, krr=[0.5, 0.5, 0.5, 2.0])}).verdict is Verdict.FAILS


def test_combined_gem_must_be_ahead_between_one_and_ten():
    titles = [TITLES[7], TITLES[8]]
    assert (
        CHECKS["A1"]({"errors": curves(titles, combined_gem=[2.0, 0.3, 0.3, 2.0])}).words == "holds for ε = 1 to 10"
    )
    finding = CHECKS["A1"]({"errors": curves(titles, combined_gem=[0.3, 2.0, 0.3, 0.3])})
    assert finding.verdict is Verdict.IN_PART
    assert "combined GEM is below GEM and mGEM only for ε = 0.1 and ε = 10 to 100" in finding.comment


def layouts(weighted, right=(), **errors):
    first, second = (layout.title for layout in LAYOUTS.values())
    measures = {"pearson": (0.22, 0.44), "spearman": (0.12, 0.27), "weighted": weighted}
    rows = [
        {"scenario": title, "measure": name, "found": values[place], "printed": values[place]}
        for place, title in enumerate((first, second))
        for name, values in measures.items()
    ]
    better = curves([first], **{"rnm": [2.0] * 4, **errors})
    worse = curves([second], **{"rnm": [1.5] * 4, **dict(right)})
    return {"errors": pa.concat_tables([better, worse]), "correlations": pa.Table.from_pylist(rows)}


def test_slightly_worse_is_at_most_a_quarter_and_said_for_which_epsilon():
    behind = {
        "rnm": [1.0] * 4,
        "gem": [1.01, 1.1, 2.0, 2.0],
        "rs": [1.02, 1.2, 9.0, 9.0],
        "mgem": [1.02, 1.2, 9.0, 9.0],
    }
    assert CHECKS["S3"]({"errors": curves([TITLES[3]], **behind)}).words == "holds for ε ≤ 1"
    finding = CHECKS["S3"]({"errors": curves([TITLES[3]], **behind | {"mgem": [1.02, 1.3, 9.0, 9.0]})})
    assert finding.verdict is Verdict.FAILS


def gains(*sizes):
    """Return a map of four cells for each γ, with one |HG| for each cell."""
    rows = [
        {"panel": f"γ = {gamma:g}", "sensitivity_1": first, "sensitivity_2": second, "gain": gain}
        for gamma, row in zip((0.5, 0.2, 0.05, 0.01, 0.001), sizes, strict=True)
        for (first, second), gain in zip([(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 2.0)], row, strict=True)
    ]
    return {"gains": pa.Table.from_pylist(rows)}


def test_the_effect_of_gamma_is_judged_by_the_mean_over_the_map():
    falling_somewhere = [(0.3 - 0.05 * step, 0.2 * step, -0.2 * step, 0.0) for step in range(1, 6)]
    finding = CHECKS["T4"](gains(*falling_somewhere))
    assert finding.words == "holds"
    assert "In the other 2 of 4, Δ₂/Δ₁ is 1.00 to 1.00" in finding.measured
    assert CHECKS["T4"](gains(*reversed(falling_somewhere))).verdict is Verdict.FAILS


def test_layouts_of_our_own_making_illustrate_and_never_prove():
    mgem, gem = [0.5, 0.5, 3.0, 3.0], [0.5] * 4
    assert CHECKS["S8"](layouts((0.83, 0.16), mgem=mgem, gem=gem)).words == "holds on our own example for ε ≤ 1"
    assert (
        CHECKS["S9"](layouts((0.83, 0.16), right={"mgem": mgem, "gem": [2.0] * 4})).words
        == "holds on our own example"
    )
    assert CHECKS["S10"](layouts((0.83, 0.16))).words == "holds on our own example"
    assert (
        CHECKS["S10"](layouts((0.83, 0.16), rnm=[2.0, 2.0, 1.0, 1.0])).words == "holds on our own example for ε ≤ 1"
    )
    assert CHECKS["S10"](layouts((0.16, 0.83))).verdict is Verdict.IN_PART


def far(losses, searched):
    sizes = (2, 3, 4)
    return {
        "far": pa.table(
            {
                "candidates": sizes,
                "lead": [40.0] * 3,
                "loss": losses,
                "searched_loss": searched,
                "pairs": [10] * 3,
                "claimed": [k - 1.0 for k in sizes],
            }
        )
    }


@pytest.mark.parametrize("losses", [([1.95, 2.96, 3.97], [0.5] * 3), ([0.5] * 3, [1.95, 2.96, 3.97])])
def test_a_loss_near_k_epsilon_refutes_the_smaller_bound(losses):
    finding = CHECKS["P10"](far(*losses))
    assert finding.verdict is Verdict.FAILS
    assert finding.comment.startswith("Fails: the loss tends to kε.")


def test_losses_within_the_smaller_bound_would_confirm_it():
    assert CHECKS["P10"](far([1.0, 2.0, 3.0], [0.9, 1.9, 2.9])).verdict is Verdict.HOLDS
    finding = CHECKS["P10"](far([1.0, 2.0, 3.3], [0.9, 1.9, 2.9]))
    assert finding.comment.startswith("Fails: the loss is larger.")


@pytest.mark.parametrize(("id_", "other"), [("U2", "noisy_max"), ("U3", "uniform")])
@pytest.mark.parametrize(
    ("truth", "verdict", "said"),
    [
        ([True, True, False], Verdict.HOLDS, ""),
        ([True, False, False], Verdict.IN_PART, "not sufficient, though it is necessary"),
        ([True, False, True], Verdict.IN_PART, "the condition is not sufficient."),
    ],
)
def test_a_printed_condition_is_judged_as_sufficient_and_said_to_be_necessary_if_it_is(
    id_, other, truth, verdict, said
):
    published = [True, True, False]
    table = {
        f"published_worse_than_{other}": published,
        f"worse_than_{other}": truth,
        f"worse_than_{other}_alone": published,
    }
    finding = CHECKS[id_]({"conditions": pa.table(table), "scenarios": own(published, truth)})
    assert finding.verdict is verdict
    assert said in finding.comment
    assert f"{100 if truth[1] else 50}% in scenario 2, never met in scenario 3" in finding.measured


def own(published, truth, gem=0.5):
    """Return comparisons in scenarios 2 and 3: as given in the first, and without the condition in the other."""
    never = [False] * len(published)
    return pa.concat_tables(
        pa.table(
            {
                "scenario": [TITLES[place]] * len(published),
                "epsilon": [1.0] * len(published),
                **{f"published_worse_than_{other}": said for other in ("noisy_max", "uniform")},
                **{f"worse_than_{other}": true for other in ("noisy_max", "uniform")},
                "gem": [gem] * len(published),
                "rnm": [1.0] * len(published),
            }
        )
        for place, said, true in ((2, published, truth), (3, never, never))
    )


def test_a_guide_must_name_the_better_mechanism_in_every_scenario():
    always = [True] * 3
    finding = CHECKS["G9"]({"scenarios": own(always, always)})  # they prefer RNM in scenario 2; GEM is better
    assert finding.verdict is Verdict.FAILS
    assert "the condition names the wrong one in at least half of the cases in scenarios 2" in finding.comment
    assert "both prefer RNM at every ε, though GEM’s error at ε = 1 is 0.5 and RNM’s 1" in finding.measured
    never = [False] * 3
    assert "scenarios 2" not in CHECKS["G9"]({"scenarios": own(never, never)}).comment
