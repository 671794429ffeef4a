"""One hypothesis profile for the whole suite (the same examples on every run, no deadline), and a key in a file."""

import pytest
from hypothesis import HealthCheck, settings
from score_tables import KEY

settings.register_profile(
    "dpselect",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("dpselect")


@pytest.fixture
def key_file(tmp_path):
    """A key file for a release, readable by its owner only."""
    path = tmp_path / "key"
    path.write_text(KEY.hex())
    path.chmod(0o600)
    return str(path)
