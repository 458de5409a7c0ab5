"""Logs of other tools as directories that `report`, `findings` and `compare` read (docs/reference/import.md)."""
