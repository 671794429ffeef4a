"""Speed, as ratios against peers and against the memory limit, measured side by side in one run.

``make bench`` prints a table, and writes docs/benchmarks.md and its pictures. Nothing here is part of the tests:
machines are shared and noisy, and seconds are nobody's contract.
"""
