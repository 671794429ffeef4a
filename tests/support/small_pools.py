"""A pool in which each member's tilt shows which sensitivities it favours."""

import dpselect as dps
from dpselect.pools import TILTS


def tilted(epsilon):
    """Return noisy max and GEM at every tilt."""
    return [family(epsilon=epsilon, tilt=tilt) for family in (dps.NoisyMax, dps.GEM) for tilt in TILTS]
