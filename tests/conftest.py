"""One hypothesis profile for the whole suite (the same examples on every run, no deadline), and a key in a file."""

import pytest
from hypothesis import HealthCheck, settings
from score_tables import KEY

from dpselect.exact import ExactStream
from dpselect.kernels.compilation import compiled_at_once
from dpselect.laws import base as running

settings.register_profile(
    "dpselect",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("dpselect")


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """Test the compiled kernels, also in small calls; tests/kernels/test_routes.py tests the other route."""
    with compiled_at_once():
        yield


@pytest.fixture
def key_file(tmp_path):
    """A key file for a release, readable by its owner only."""
    path = tmp_path / "key"
    path.write_text(KEY.hex())
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def forced(monkeypatch):
    """Return a function that selects with a filter that decides nothing and reports the number of exact rows."""

    def select(mechanism, *arguments, **settings):
        streams = []

        def counted(units, row):
            streams.append(row)
            return ExactStream(units, row)

        with monkeypatch.context() as patch:
            patch.setattr(running, "FILTER_ERROR", 1e300)
            patch.setattr(running, "ExactStream", counted)
            return mechanism.select(*arguments, **settings), len(streams)

    return select
