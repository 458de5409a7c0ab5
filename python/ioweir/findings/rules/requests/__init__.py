"""How large, where and in which order requests are."""
