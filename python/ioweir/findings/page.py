"""docs/reference/findings.md, made of the table of rules (tools/generate.py --docs docs/reference)."""

from __future__ import annotations

from ioweir.findings.spared import WHY
from ioweir.findings.table import RULES
from ioweir.findings.text import sections

PAGE = "findings.md"
_HEAD = """\
# Findings

Generated from python/ioweir/findings by `tools/generate.py --docs docs/reference`.

`ioweir findings DIR` says what is wrong with the I/O of a traced run, what it costs, and what to do
([how to read it](../how-to/read-a-finding.md)). `--json` prints the same as JSON, `--plan CODE` the plan that helps
against a finding, `--explain CODE` what stands below. `ioweir run` ends with the three findings that cost most;
`ioweir report DIR --json` has all of them as `findings`.

## What the figures mean

- `seconds`: what the finding costs on the critical path, never more than the run. The ranks meet in collective MPI-IO
  calls. Between two meetings the rank that spends most time in the finding's calls counts, and ioweir adds up these
  stretches. In a collective call only the time after the last rank's arrival counts.
- `gain`: wall seconds that a repair saves, from `low` to `high`. `method` is `bound`: derived from the trace, neither
  simulated nor measured, [as said below](#how-the-gain-is-derived). `high` may be more than `seconds`: a repair
  also spares what leads to the calls, and the next run may have worse luck than this one.
- `may_cost`, where `low` is 0: seconds that the repair may cost, or seem to cost. It does work of its own, such as
  passing bytes between ranks, and runs of one program differ: by 2 % of the run at least, or 27 % of what was lost;
  where ranks share processors by all of what was lost.
- `severity`: `high` from 10 % of the run on, about as much as runs on shared machines vary by themselves (Wright et
  al. 2013, section 5.1); `medium` from 2 %; else `low`. If the trace does not show the loss itself (gain from 0), it
  is `medium` at most. Below 1 % of the run ioweir reports nothing.
- `chain`: codes of findings that explain the same seconds (half of them or more). They are one finding, led by the
  cause.
- `unseen`: what the rule cannot see.
- `title`: the code in words. `layer`, `files`, `ranks`: where, most time first; at most 20 files.

Traces hold waiting in MPI outside of I/O if it lasts longer than 10 us. It is part of the seconds if the trace
shows that it is waiting for I/O: for the rank that does all of it, or for a turn. What a late rank costs the others
shows in collective MPI-IO calls only.

Of a run with more than 10 million events, ioweir looks at up to 64 stretches, which have 8 million of them. The
stretches are spread evenly over the events: a burst that has a tenth of the events has a tenth of the stretches.
Each has the calls of all ranks, and each outermost call with what it made, as far as there is room. Counts and
bytes are then those of the stretches. ioweir multiplies seconds by how much more time the run spent in calls.
`unseen` says how much ioweir looked at.

## How the gain is derived

Each rule says what was `lost` in the traced run, and what its repair does: the calls vanish; or the calls stay, and the
time vanishes that others of the same run do without; or something else is done instead, whose time is not in the trace.
Then, for all rules alike:

- high: what was lost and, where the calls vanish, the pauses before them on the rank that is waited for, times how
  much more another run may take; twice what was lost at most, and never more than the run;
- low: a half of what was lost, or 0, or what else the rule says;
- where the repair does something else instead, and the rule knows no low end: a quarter of what was lost, to all of it.

{why}

## All codes

| code | in words | layer |
|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    rows = "".join(f"| [`{rule.code}`](#{rule.code}) | {rule.title} | {rule.layer} |\n" for rule in RULES)
    why = "\n".join(f"- **{one.name}**: {one.value}. {one.why}" for one in WHY)
    parts = [_HEAD.replace("{why}", why) + rows]
    for rule in RULES:
        lines = [f"\n## {rule.code}\n", f"{rule.title}.\n"]
        lines += [f"- **{head}**: {words}" for head, words in sections(rule)]
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)
