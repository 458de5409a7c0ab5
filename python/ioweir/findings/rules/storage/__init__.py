"""Aggregators and storage targets."""
