"""The paper, reproduced: ``python -m experiments`` writes one HTML report, its figures and its tables.

An :class:`~experiments.experiment.Experiment` computes tables. Figures, listings, claims and the report read only
the tables. To add an experiment, follow :mod:`experiments.synthetic.bimodal` and list it in its package's
``EXPERIMENTS``.
"""
