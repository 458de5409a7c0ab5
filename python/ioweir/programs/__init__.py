"""Executables and libraries: what they are linked to and call, their symbols, and how ioweir is linked in."""
