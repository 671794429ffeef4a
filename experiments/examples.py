"""The explorer's examples: a made-up café, and the first score set of each scenario.

``python -m experiments.examples FILE`` writes them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from experiments.files import replacing
from experiments.scenarios import SCENARIOS

__all__ = ["examples"]

DIGITS = 4

CAFE = {
    "Filter coffee": (486, 9),
    "Espresso": (431, 8),
    "Sandwich": (412, 16),
    "Croissant": (398, 10),
    "Soup of the day": (372, 18),
    "Breakfast for two": (368, 44),
    "Tea": (352, 9),
    "Cheesecake": (334, 15),
    "Coffee beans, 1 kg": (322, 40),
    "Orange juice": (295, 12),
    "Birthday cake": (285, 60),
    "Catering tray": (240, 95),
}
"""Score and sensitivity of each product."""

ABOUT = {
    1: "Good candidates are more sensitive: 50 of score 1 and sensitivity 1.8, 50 of score −1 and sensitivity 1.",
    2: "Good candidates are less sensitive: 50 of score 1 and sensitivity 1, 50 of score −1 and sensitivity 1.8.",
    3: "In each group, half of the candidates are more sensitive: no correlation.",
    4: "One user of 5000. Mean scores grow like log a; later candidates vary more.",
    5: "One user of 5000. Mean scores grow like 0.1 a; later candidates vary less.",
    6: "One user of 5000. Means and standard deviations are independent.",
    7: "One user of 5000. Half the users like what the other half dislikes.",
    8: "One user of 5000. Scenario 7 with more noise.",
}


def examples() -> str:
    """Return the file's text: a title, a sentence, scores and sensitivities for each example."""
    scores, sensitivities = zip(*CAFE.values(), strict=True)
    found: list[dict[str, Any]] = [
        {
            "id": "cafe",
            "title": "A café: which product earns most?",
            "about": "Made up. Score: last week's takings. Sensitivity: the most that one customer spends on it.",
            "names": list(CAFE),
            "scores": scores,
            "sensitivities": sensitivities,
        }
    ]
    for number, build in SCENARIOS.items():
        scenario = build()
        found.append(
            {
                "id": str(number),
                "title": scenario.title,
                "about": ABOUT[number],
                "scores": scenario.scores[0].round(DIGITS).tolist(),
                "sensitivities": scenario.sensitivities.round(DIGITS).tolist(),
            }
        )
    return (
        json.dumps(found, ensure_ascii=False, indent=None, separators=(",", ":")).replace('{"id"', '\n{"id"') + "\n"
    )


if __name__ == "__main__":
    with replacing(Path(sys.argv[1])) as temporary:
        temporary.write_text(examples(), encoding="utf-8")
