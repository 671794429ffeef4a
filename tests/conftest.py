"""One hypothesis profile for the whole suite: the same examples on every run, and no deadline."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "dpselect",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("dpselect")
