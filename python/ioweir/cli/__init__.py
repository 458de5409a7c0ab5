"""The command line. Nothing is imported here: app.py has it."""
