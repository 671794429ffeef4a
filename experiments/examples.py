"""The explorer's examples: one made-up person, a made-up café, and the first score set of each scenario.

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

FILMS = {
    "Comedy": 3.6,
    "Crime": 3.8,
    "Documentary": 4.1,
    "Drama": 3.1,
    "Animation": 3.9,
    "History": 2.9,
    "Horror": 1.3,
    "Musical": 2.1,
    "Romance": 1.8,
    "Science fiction": 4.7,
    "Thriller": 3.4,
    "Western": 2.4,
}
"""One person's ratings."""

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
            "id": "film",
            "whose": "one",
            "title": "One person: which films does Ann like best?",
            "about": "Made up. Score: how Ann would rate such films, as a model predicts, from 1 to 5. A row about "
            "one person may change altogether, so each sensitivity is the whole range: 4.",
            "names": list(FILMS),
            "scores": list(FILMS.values()),
            "sensitivities": [4] * len(FILMS),
        },
        {
            "id": "cafe",
            "whose": "many",
            "title": "Many people: which product of a café earns most?",
            "about": "Made up. Score: last week's takings. Sensitivity: the most that one customer spends on it.",
            "names": list(CAFE),
            "scores": scores,
            "sensitivities": sensitivities,
        },
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
