"""Progress: a bar on a terminal, plain lines elsewhere."""

import io

import pytest

from experiments.steps import Steps


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_plain_lines_where_there_is_no_terminal():
    stream = io.StringIO()
    with Steps(2, stream) as progress:
        progress.begin("measuring")
        progress.begin("cutting")
    assert stream.getvalue() == "  0%  measuring\n 50%  cutting\n100%  done\n"


def test_many_steps_make_few_lines():
    stream = io.StringIO()
    with Steps(1000, stream) as progress:
        for step in range(1000):
            progress.begin(f"step {step}")
    assert len(stream.getvalue().splitlines()) == 11


def test_progress_is_a_bar_on_a_terminal():
    stream = Terminal()
    with Steps(2, stream) as progress:
        progress.begin("measuring")
        progress.begin("cutting")
    assert "\r" in stream.getvalue()
    assert "2/2" in stream.getvalue()
    assert "done" in stream.getvalue()


def test_progress_does_not_claim_to_be_done_when_the_work_failed():
    stream = io.StringIO()

    def fail():
        with Steps(2, stream) as progress:
            progress.begin("measuring")
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        fail()
    assert "done" not in stream.getvalue()
