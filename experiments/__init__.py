"""The paper, reproduced: ``python -m experiments`` writes one HTML report, its figures and its tables.

An :class:`~experiments.experiment.Experiment` computes tables; drawing and the report read only those. To add
one, write it like :mod:`experiments.scenarios` and list it in :mod:`experiments.__main__`.
"""
