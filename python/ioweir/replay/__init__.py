"""Recorded I/O carried out again: what a trace says becomes a script a rank, which kernels/replay carries out."""
