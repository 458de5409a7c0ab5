"""From a traced run to a faster one: plans that are tried, and judged by what was measured."""
