"""Traces in the forms of other tools (docs/reference/export.md)."""
