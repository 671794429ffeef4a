"""Audits of privacy: a check of anyone's selector, exact losses, and a search for the worst neighbours.

:func:`check` looks for violations in a mechanism, in another library's selector or in your own. Exact probabilities
make privacy a deterministic test: :func:`privacy_loss` compares a mechanism's laws on two neighbouring sets of
scores, and :func:`audit` searches for the neighbours on which they differ most.
"""

from dpselect.auditing.conformance import Check, check
from dpselect.auditing.losses import PrivacyLoss, privacy_loss
from dpselect.auditing.search import Audit, audit

__all__ = ["Audit", "Check", "PrivacyLoss", "audit", "check", "privacy_loss"]
