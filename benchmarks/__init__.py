"""Speed relative to peers and to the memory limit, measured side by side in one run.

``make bench`` prints a table and writes docs/benchmarks.md and its pictures. The tests do not run the benchmarks:
machines are shared and noisy, and seconds are not part of the contract.
"""
