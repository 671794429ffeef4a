"""The paper, reproduced: ``python -m experiments`` writes one HTML report, its figures and its tables.

An :class:`~experiments.experiment.Experiment` computes tables; drawing, claims and the report read only
those. To add one, write it like :mod:`experiments.synthetic.bimodal` and list it in its package's ``EXPERIMENTS``.
"""
