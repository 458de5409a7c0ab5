"""The rules, by what they look at; table.py lists them all."""
