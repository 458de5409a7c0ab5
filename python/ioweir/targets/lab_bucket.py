"""A lab of directories whose rates token buckets keep: for users without root, and machines without loop devices.

Only ioweir knows of the buckets (src/storage/throttle.hpp): its probe and its engine wait as they say, other
programs do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioweir.base.compiled import compiled
from ioweir.base.guarded_files import Folder
from ioweir.errors import IoweirError
from ioweir.targets import lab as labs

if TYPE_CHECKING:
    from ioweir.targets.lab import Lab


class BucketBackend:
    """See lab.Backend."""

    def missing(self) -> list[str]:
        """Nothing is needed."""
        return []

    def owns(self, lab: Lab) -> bool:
        """The file for the buckets has the lab's own name, or is not made yet."""
        return lab.facts.get("state") in (None, str(labs.MEMORY / lab.own_name), str(lab.root / lab.own_name))

    def make(self, lab: Lab) -> None:
        """Directories and a file for the buckets."""
        folder = labs.MEMORY if labs.MEMORY.is_dir() else lab.root
        lab.facts["state"] = str(folder / lab.own_name)
        lab.save()
        for number in range(len(lab.rates)):
            lab.target(number).mkdir()
        rows: list[Any] = [
            {"name": f"t{number}", "directory": f"t{number}", "rate": f"{lab.rate} B"}
            for number in range(len(lab.rates))
        ]
        labs.write_manifest(lab, {"state": lab.facts["state"]}, rows)

    def set_rate(self, lab: Lab, number: int) -> None:
        """In effect at once for every process that uses the bucket."""
        try:
            compiled().set_token_bucket(lab.facts["state"], len(lab.rates), number, lab.rates[number])
        except ValueError as error:
            raise IoweirError(str(error)) from error

    def look(self, lab: Lab) -> list[dict[str, Any]]:
        """Asks as the probe does."""
        try:
            found = compiled().describe_targets(lab.directory)["targets"]
        except ValueError as error:
            return [{"rate_now": None, "problem": str(error)} for _ in lab.rates]
        return [{"rate_now": row["token_bucket_rate"], "problem": row["unusable"]} for row in found]

    def remove(self, lab: Lab, force: bool) -> None:  # noqa: ARG002 (nothing can be in the way)
        """With all files on the targets."""
        with lab.open() as folder:
            for number in range(len(lab.rates)):
                folder.remove_tree(f"t{number}")
        if "state" in lab.facts:
            with Folder.open(
                labs.MEMORY if lab.facts["state"] == str(labs.MEMORY / lab.own_name) else lab.root
            ) as memory:
                memory.remove(lab.own_name, missing_ok=True)
