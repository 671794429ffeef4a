"""Audits of privacy: exact losses, a search for the worst neighbours, and tests of samplers.

Exact probabilities make privacy a deterministic test. :func:`privacy_loss` compares a mechanism's laws on two
neighbouring sets of scores. :func:`audit` searches for the neighbours on which the laws differ most.
:func:`audit_sampler` tests draws, including those of other libraries.
"""

from dpselect.auditing.losses import PrivacyLoss, privacy_loss
from dpselect.auditing.samplers import Sampler, SamplerAudit, audit_sampler
from dpselect.auditing.search import Audit, audit

__all__ = ["Audit", "PrivacyLoss", "Sampler", "SamplerAudit", "audit", "audit_sampler", "privacy_loss"]
