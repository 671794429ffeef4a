"""The command line."""

import pytest

from experiments import __main__ as command_line


def test_help_names_the_options(capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(option in text for option in ("--output", "--fast", "--pictures", "--only", "--list", "--ledger"))


@pytest.mark.parametrize("arguments", [["--quick"], ["--fas"], ["--output"], ["everything"]])
def test_an_unknown_or_incomplete_argument_is_named(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--pictures"])
def test_a_file_in_place_of_a_directory_is_refused_before_the_work(option, tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.touch()
    with pytest.raises(SystemExit):
        command_line.main(["--output", str(tmp_path / "out"), option, str(taken)])
    assert f"argument {option}: cannot create the directory {taken}" in capsys.readouterr().err


def test_the_list_names_every_figure_and_does_nothing_else(capsys, tmp_path):
    assert command_line.main(["--list", "--output", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert all(experiment.name in shown for experiment in command_line.EXPERIMENTS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--pictures", "--ledger"])
def test_what_shows_all_figures_is_refused_for_one(option, tmp_path, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--only", "tilts", option, str(tmp_path / "somewhere")])
    assert f"argument {option}: needs all figures" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_pictures_are_refused_for_a_fast_run(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--fast", "--pictures", str(tmp_path / "somewhere")])
    assert "argument --pictures: a fast run draws no PNG" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_unknown_figure_is_named(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--only", "everything-else"])
    assert "everything-else" in capsys.readouterr().err


def test_an_interruption_ends_without_a_trace_and_without_a_report(monkeypatch, tmp_path, capsys):
    def interrupt(*_arguments, **_names):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "run", interrupt)
    assert command_line.main(["--output", str(tmp_path)]) == 130
    assert "the report was not written" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
