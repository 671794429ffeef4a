"""The page shows what the library computes."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import dpselect as dps
from dpselect.explorer.server import PAGES, _file
from dpselect.explorer.views import MOST_CANDIDATES, PARTS, RECORDS, mechanisms, read_setting, view
from dpselect.registry import UNSAFE
from experiments.examples import examples

REQUEST = {
    "names": ["ann", "bob", "cäcilie"],
    "scores": [0.0, 1.0, 2.5],
    "sensitivities": [0.5, 1.0, 2.0],
    "neighbour": [0.5, 0.5, 1.0],
    "epsilon": 2.0,
    "tilt": -3.0,
    "beta": 0.1,
    "gamma": 0.2,
    "chosen": list(RECORDS),
    "parts": list(PARTS),
}


@pytest.fixture(scope="module")
def shown():
    return view(read_setting(REQUEST))


def mechanism(name, epsilon=2.0, tilt=-3.0):
    return {
        "heterogeneous-rnm": dps.HeterogeneousNoisyMax(epsilon=epsilon),
        "kept-rnm": dps.HeterogeneousNoisyMax(epsilon=epsilon, keep=(0.0, 0.25)),
        "rnm": dps.NoisyMax(epsilon=epsilon),
        "em": dps.NoisyMax(epsilon=epsilon, noise="gumbel"),
        "tilted-rnm": dps.NoisyMax(epsilon=epsilon, tilt=tilt, beta=0.1),
        "gem": dps.GEM(epsilon=epsilon, beta=0.1),
        "mgem": dps.ModifiedGEM(epsilon=epsilon, beta=0.1),
        "tilted-gem": dps.GEM(epsilon=epsilon, tilt=tilt, beta=0.1),
        "combined-gem": dps.CombinedGEM(epsilon=epsilon, beta=0.1),
        "rs": dps.RandomStopping(epsilon=epsilon, gamma=0.2),
        "rs-improved": dps.RandomStopping(epsilon=epsilon, gamma=0.2, eta=0.0),
        "rs-exponential": dps.RandomStopping(epsilon=epsilon, gamma=0.2, noise="exponential"),
        "rs-improved-exponential": dps.RandomStopping(epsilon=epsilon, gamma=0.2, eta=0.0, noise="exponential"),
        "top-share": dps.TopShare(epsilon=epsilon),
        "krr": dps.RandomizedResponse(epsilon=epsilon),
        "uniform": dps.Uniform(),
        "rnmh": dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=epsilon),
    }[name]


@pytest.mark.parametrize("name", RECORDS)
def test_probabilities_errors_and_losses_are_the_library_s(shown, name):
    scores, sensitivities = REQUEST["scores"], REQUEST["sensitivities"]
    made = mechanism(name)
    np.testing.assert_allclose(shown["probabilities"][name], made.pmf(scores, sensitivities), rtol=1e-12)
    assert shown["chances"][name] == pytest.approx(dps.probability_of_best(made, scores, sensitivities), rel=1e-12)
    assert shown["errors"][name] == pytest.approx(dps.expected_error(made, scores, sensitivities), rel=1e-12)
    loss = dps.auditing.privacy_loss(made, scores, REQUEST["neighbour"], sensitivities).epsilon
    assert shown["losses"][name] == pytest.approx(loss, rel=1e-12)
    assert mechanisms()[name]["private"] is made.guarantee.is_private


@pytest.mark.parametrize("name", RECORDS)
def test_curves_against_the_budget_are_the_library_s(shown, name):
    curve = shown["curves"][name]
    assert (curve["places"][0], curve["places"][-1]) == (0.01, 100.0)
    for place in (len(curve["places"]) // 3, len(curve["places"]) // 2):
        made = mechanism(name, epsilon=curve["places"][place])
        chance = dps.probability_of_best(made, REQUEST["scores"], REQUEST["sensitivities"])
        error = dps.expected_error(made, REQUEST["scores"], REQUEST["sensitivities"])
        assert curve["chances"][place] == pytest.approx(chance, rel=1e-12)
        assert curve["errors"][place] == pytest.approx(error, rel=1e-12)


def test_a_moving_slider_asks_for_no_curves():
    shown = view(read_setting(REQUEST | {"chosen": ["gem"], "parts": []}))
    assert set(shown) == {"chances", "errors", "probabilities", "snippets"}
    assert set(shown["probabilities"]) == {"gem"}


def test_the_correlation_is_the_library_s_and_may_be_undefined(shown):
    assert shown["correlation"] == pytest.approx(1.0)
    level = view(read_setting({"scores": [1.0, 1.0], "sensitivities": [1.0, 2.0], "parts": ["correlation"]}))
    assert level["correlation"] is None


def test_an_infinite_loss_is_sent_as_null_because_json_has_no_infinity():
    shown = view(
        read_setting(
            {"scores": [0.0, 0.5], "sensitivities": [0.0, 1.0], "neighbour": [0.0, -0.5], "parts": ["losses"]}
        )
    )
    assert shown["losses"]["rnmh"] is None
    assert all(math.isfinite(loss) for name, loss in shown["losses"].items() if name != "rnmh")
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize("name", RECORDS)
def test_snippets_run_as_they_stand(shown, name, capsys):
    text = shown["snippets"][name]
    assert ("NOT private" in text) == (name in UNSAFE)
    exec(compile(text, "snippet", "exec"), {})  # noqa: S102 - our own text
    printed = capsys.readouterr().out
    assert "picked: " in printed
    error = float(printed.rsplit(" ", 1)[1])
    assert error == pytest.approx(shown["errors"][name], rel=1e-9)


def test_snippets_have_the_sliders_to_the_last_digit():
    request = {
        "scores": [0.0, 1.0],
        "sensitivities": [1.0, 2.0],
        "epsilon": 10**0.3,
        "tilt": -1 / 3,
        "chosen": ["tilted-gem"],
    }
    text = view(read_setting(request))["snippets"]["tilted-gem"]
    assert f"epsilon={10**0.3!r}, tilt={-1 / 3!r})" in text


def test_the_snippet_of_many_candidates_is_still_readable():
    request = {"scores": [0.123456789] * 200, "sensitivities": [1.0] * 200}
    text = view(read_setting(request))["snippets"]["gem"]
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"scores": [1.0]}, "at least 2"),
        ({"scores": [0.0] * (MOST_CANDIDATES + 1)}, "at most"),
        ({"scores": "1,2,3"}, "scores must hold numbers"),
        ({"scores": [0.0, None, 1.0]}, "scores must hold numbers"),
        ({"scores": ["2.5", 0.0, 1.0]}, "scores must hold numbers"),
        ({"scores": [0.0, float("nan"), 1.0]}, "scores must be finite"),
        ({"sensitivities": [1.0, -1.0, 1.0]}, "sensitivities must be ≥ 0"),
        ({"sensitivities": [1.0, 1.0]}, "sensitivities must have one number"),
        ({"neighbour": [9.0, 1.0, 2.5]}, "neighbour must be within the sensitivities"),
        ({"names": ["a", "b", "a"]}, "names must name each candidate once"),
        ({"epsilon": 0}, "epsilon must be between"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"tilt": 1e9}, "tilt must be between"),
        ({"beta": 1.5}, "beta must be between"),
        ({"gamma": 0}, "gamma must be between"),
    ],
)
def test_bad_requests_are_refused_without_showing_scores(change, rule):
    with pytest.raises(ValueError, match=rule) as caught:
        read_setting(REQUEST | change)
    assert "2.5" not in str(caught.value)


def test_the_scenarios_are_the_paper_s():
    assert _file("scenarios.json").decode() == examples()
    for scenario in json.loads(_file("scenarios.json")):
        read_setting(scenario)


def test_every_file_of_the_page_is_there_and_loads_nothing_from_elsewhere():
    for name, _ in PAGES.values():
        text = _file(name).decode().replace("http://www.w3.org/", "")
        assert "http://" not in text
        assert "https://" not in text


def test_the_licences_of_the_charts_are_shipped_with_them():
    assert "Observable Plot" in _file("plot.js")[:200].decode()
    for author in ("Observable, Inc.", "Mike Bostock", "Mikola Lysenko"):
        assert author in _file("plot.LICENSE").decode()


def test_the_library_does_not_load_the_page():
    code = "import sys, dpselect; sys.exit('dpselect.explorer' in sys.modules or 'http.server' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
