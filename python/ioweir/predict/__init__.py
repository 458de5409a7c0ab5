"""Predicting runs on simulated machines: machine files (machine.py), runs and ranges (simulate.py), text (text.py).

Simulated results are called simulated wherever they are shown.
"""
