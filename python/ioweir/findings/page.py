"""docs/reference/findings.md, made of the table of rules (tools/generate.py --docs docs/reference)."""

from __future__ import annotations

from ioweir.findings.table import RULES
from ioweir.findings.text import sections

PAGE = "findings.md"
_HEAD = """\
# Findings

Generated from python/ioweir/findings by `tools/generate.py --docs docs/reference`.

`ioweir findings DIR` says what is wrong with the I/O of a traced run, what it costs, and what to do; `--json`
prints the same as JSON, `--plan CODE` the plan
that helps against a finding, `--explain CODE` what stands below. `ioweir run` ends with the three findings that
cost most; `ioweir report DIR --json` has all of them as
`findings`.

## What the figures mean

- `seconds`: what it costs on the critical path. The ranks meet in collective MPI-IO calls; between two meetings the
  rank that spends most time in the calls of the finding
  counts, and these stretches are added up. In a collective call only the time after the last rank's arrival counts.
Never more than the run.
- `gain`: wall seconds that a repair saves, from low to high. `method` is `bound`: derived from the trace as each
  rule says, neither simulated nor measured. Where a repair passes bytes between ranks and the node's memory answered
  the requests, the passing may cost more than the requests did: then `low` is 0, and
  `may_cost` says how many seconds. Where `low` is 0, `may_cost` is 2 % of the run at least: repeated runs of one
  program differ by that, so that a repair which saves nothing may seem to cost it.
- `severity`: `high` from 10 % of the run on, about as much as runs on shared machines vary by themselves (Wright et
  al. 2013, section 5.1); `medium` from 2 %; else `low`. Where the
  trace does not show the loss itself (gain from 0), it is `medium` at most. Below 1 % of the run nothing is reported.
- `chain`: codes of findings that explain the same seconds (half of them or more). They are one finding, led by the
  cause.
- `unseen`: what the rule cannot see.
- `title`: the code in words. `layer`, `files`, `ranks`: where, most time first; at most 20 files.

Waiting in MPI outside of I/O is in traces where it lasts longer than 10 us. It is part of the seconds where the trace
shows that it is waiting for I/O: for the rank that does all of it, and for a turn. What a late rank costs the others is
seen in collective MPI-IO calls only. Traces of more than 20 million events are
not looked into.

| code | in words | layer |
|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    rows = "".join(f"| [`{rule.code}`](#{rule.code}) | {rule.title} | {rule.layer} |\n" for rule in RULES)
    parts = [_HEAD + rows]
    for rule in RULES:
        lines = [f"\n## {rule.code}\n", f"{rule.title}.\n"]
        lines += [f"- **{head}**: {words}" for head, words in sections(rule)]
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)
