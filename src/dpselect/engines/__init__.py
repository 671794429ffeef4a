"""Engines that carry mechanisms to tables: Arrow record batches, files, Spark.

One implementation, :mod:`dpselect.engines.arrow`, picks for a record batch; the command line and Spark call it.
"""
