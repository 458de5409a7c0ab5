"""A lab of loop devices: each target an ext4 of its own in an image file, mounted, with its own rate limit in the
kernel.

Every program is limited there, and O_DIRECT works. Buffered writes go into the page cache at full speed and wait
when they are flushed. What belongs to the lab is found by what it is: a loop device by the image file behind it, a
mount by its loop device.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ioweir.base.guarded_files import Folder
from ioweir.errors import IoweirError
from ioweir.targets import lab as labs
from ioweir.targets import lab_limits

if TYPE_CHECKING:
    from ioweir.targets.lab import Lab

PROGRAMS: Final = ("losetup", "mkfs.ext4", "mount", "umount")
_PATH: Final = "/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name: str) -> str | None:
    """Where a program is, also one that ordinary users do not have in their PATH."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_PATH}")


def _run(*words: str | Path) -> str:
    program = find_program(str(words[0]))
    if program is None:
        raise IoweirError(f"{words[0]} is not installed")
    done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip()
        raise IoweirError(f"{' '.join(map(str, words))} failed ({done.returncode}): {why}")
    return done.stdout.strip()


class LoopBackend:
    """See lab.Backend."""

    def missing(self) -> list[str]:
        """Root, loop devices, programs, rate limits."""
        lacks = [] if os.geteuid() == 0 else ["root"]
        if not Path("/dev/loop-control").exists():
            lacks.append("loop devices (/dev/loop-control, kernel module loop)")
        lacks += [f"the program {name}" for name in PROGRAMS if find_program(name) is None]
        if lab_limits.find("x") is None:
            lacks.append("rate limits of block devices (cgroup controller blkio or io)")
        return lacks

    def owns(self, lab: Lab) -> bool:
        """The folder of its images is one of the two that make() would make, or is not made yet."""
        return lab.facts.get("images") in (None, str(labs.MEMORY / lab.own_name), str(lab.root / "images"))

    def make(self, lab: Lab) -> None:
        """Images, devices, file systems, mounts, and the manifest."""
        limits = _limits(lab)
        folder = labs.MEMORY / lab.own_name if lab.facts["memory"] else lab.root / "images"
        lab.facts["images"] = str(folder)
        lab.save()
        folder.mkdir(mode=0o700)
        limits.make()
        for number in range(len(lab.rates)):
            image = _image(lab, number)
            with Folder.open(folder, own=True) as images:
                descriptor = images.create(image.name, 0o600)
            try:
                os.ftruncate(descriptor, lab.size)
            finally:
                os.close(descriptor)
            device = _run("losetup", "--find", "--show", *([] if lab.facts["memory"] else ["--direct-io=on"]), image)
            _run("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", device)
            lab.target(number).mkdir()
            _run("mount", device, lab.target(number))
            lab.target(number).chmod(0o1777)
        rows: list[Any] = [
            {"name": f"t{number}", "directory": f"t{number}", "mounted": True} for number in range(len(lab.rates))
        ]
        labs.write_manifest(lab, {}, rows)

    def set_rate(self, lab: Lab, number: int) -> None:
        """In effect at once."""
        device = _device(lab, number)
        if device is None:
            raise IoweirError(f"target {number} has no device any more; ioweir lab down, and up again")
        _limits(lab).set(_numbers(device), lab.rates[number])

    def look(self, lab: Lab) -> list[dict[str, Any]]:
        """Asks the kernel."""
        limits = _limits(lab)
        mounted = mounts()
        rows: list[dict[str, Any]] = []
        for number in range(len(lab.rates)):
            device = _device(lab, number)
            place = str(lab.target(number))
            row: dict[str, Any] = {"rate_now": None, "free": None, "device": device, "problem": ""}
            if device is None:
                row["problem"] = "its loop device is gone"
            elif mounted.get(place) != device:
                row["problem"] = f"{device} is not mounted at {place}"
            else:
                row["rate_now"] = limits.get(_numbers(device))
                space = os.statvfs(place)
                row["free"] = space.f_bavail * space.f_frsize
            rows.append(row)
        return rows

    def remove(self, lab: Lab, force: bool) -> None:
        """From the mounts down to the images; with `force` also what is in use."""
        if "images" not in lab.facts:
            return
        limits = _limits(lab)
        images = Path(lab.facts["images"])
        for number in range(len(lab.rates)):
            device = _device(lab, number)
            if device is not None:
                for place in [place for place, source in mounts().items() if source == device]:
                    _unmount(place, force)
                limits.set(_numbers(device), 0)
                _run("losetup", "--detach", device)
            with lab.open() as folder:
                if folder.status(f"t{number}") is not None:
                    folder.remove_empty(f"t{number}")  # a mount point, and nothing else
            if images.is_dir():
                with Folder.open(images, own=True) as folder:
                    folder.remove(f"t{number}.img", missing_ok=True)
        if images.is_dir():
            with Folder.open(images.parent) as folder:
                folder.remove_empty(images.name)
        limits.remove()


def _limits(lab: Lab) -> lab_limits.Limits:
    limits = lab_limits.find(lab.name)
    if limits is None:
        raise IoweirError("this kernel has no rate limits of block devices (cgroup controller blkio or io)")
    return limits


def limits_of(lab: Lab) -> lab_limits.Limits | None:
    """What a program has to join to be limited; None if nothing."""
    return _limits(lab) if lab.backend == "loop" else None


def _image(lab: Lab, number: int) -> Path:
    return Path(lab.facts["images"]) / f"t{number}.img"


def _device(lab: Lab, number: int) -> str | None:
    """The loop device whose image is the target's, whoever set it up."""
    image = str(_image(lab, number))
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            behind = file.read_text(encoding="utf-8").rstrip("\n")
        except OSError:
            continue  # detached meanwhile
        if behind.removesuffix(" (deleted)") == image:
            return f"/dev/{file.parent.parent.name}"
    return None


def _numbers(device: str) -> str:
    """ "7:3" of /dev/loop3."""
    return (Path("/sys/block") / Path(device).name / "dev").read_text(encoding="utf-8").strip()


def mounts() -> dict[str, str]:
    """Mount point to device."""
    found = {}
    for line in lab_limits.MOUNTS.read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        place = before.split()[4].encode("latin-1", "backslashreplace").decode("unicode_escape")
        found[place] = after.split()[1]
    return found


def _unmount(place: str, force: bool) -> None:
    try:
        _run("umount", place)
    except IoweirError as error:
        if not force:
            users = _users_of(place)
            who = f": used by {', '.join(users)}" if users else f": {error}"
            raise IoweirError(f"{place} cannot be unmounted{who}; end them, or use --force") from error
        _run("umount", "--lazy", place)


def _users_of(place: str) -> list[str]:
    """Processes whose working directory or open files are there."""
    users = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = [process / "cwd", *(process / "fd").iterdir()]
            if any(str(link.readlink()).startswith(place) for link in links):
                users.append(f"process {process.name} ({(process / 'comm').read_text(encoding='utf-8').strip()})")
        except OSError:
            continue
    return users
