"""What every generator of code says alike."""

HEADER = "// Generated from spec/functions*.toml.\n"


def enumerator(name: str) -> str:
    name = name.replace(" (", "_").replace(" ", "_").removesuffix(")")  # MPI_Wait (write)
    return name + "_" if name in {"open", "close", "read", "write", "creat", "dup", "dup2", "dup3"} else name
