"""What is wrong with the I/O of a run, what that costs, and what to do (docs/reference/findings.md).

`find(trace, wall_s, recorded)` is in ranking.py, the rules are in rules/. Nothing is loaded here: numpy starts threads.
"""
