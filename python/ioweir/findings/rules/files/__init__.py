"""How programs use files: opening, sharing, syncing, reading again."""
