"""Speed relative to peers and to memory bandwidth, measured side by side in one run.

``make bench`` prints a table, and writes docs/benchmarks.md and its figure. Nothing here is part of the tests:
machines are shared and noisy, and no contract is stated in seconds.
"""
