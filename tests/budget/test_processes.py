"""Many processes and one budget: crashes and races at any time leave no unpaid release and no stray key."""

from collections import Counter

import pytest
from processes import folder_in_memory, run_program


@pytest.fixture
def fast_folder():
    with folder_in_memory() as folder:
        yield folder


def run_chargers(action, folder, *arguments):
    return run_program("chargers.py", action, folder / "b.db", folder / "keys", *arguments)


def test_killing_chargers_at_random_instants_leaves_no_unpaid_release_and_loses_none(fast_folder):
    (fast_folder / "picks").mkdir()
    happened = Counter(run_chargers("kill", fast_folder, fast_folder / "picks", 1, 200))
    assert sum(count for stage, count in happened.items() if stage != "done") == 200
    assert happened["unpaid"] > 10, happened
    assert happened["paid"] + happened["published"] > 10, happened


def test_killing_a_charger_within_the_write_of_the_database_leaves_a_whole_chain_and_no_half_charge(tmp_path):
    # On disk, not in memory: waiting for the disk is most of a write.
    happened = run_program("killings.py", tmp_path / "b.db", tmp_path / "keys", 1, 200, "charger")
    assert happened["kills"] == 200
    assert happened["in a transaction"] > 10, happened
    assert happened["under way and made"] > 5, happened


def test_exactly_one_of_four_processes_racing_for_the_last_epsilon_wins(fast_folder):
    assert run_chargers("race", fast_folder, 15)["wins"] == [1] * 15


def test_one_of_eight_processes_that_charge_one_release_pays_and_all_get_its_key_and_no_other_key_is_left(
    fast_folder,
):
    assert run_chargers("share", fast_folder, 15)["payers"] == [1] * 15


def test_one_of_four_runs_of_the_command_line_for_one_release_pays_and_all_publish_its_picks(fast_folder):
    assert run_chargers("publish", fast_folder, 3)["payers"] == [1] * 3
