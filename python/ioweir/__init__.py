"""ioweir: watches the I/O of an unmodified MPI program, explains it, and says whether a plan helped.

Nothing is imported here: the command line must start quickly, and the launcher shims even more so.
"""
