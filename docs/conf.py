"""How docs/ becomes a site: `make docs` builds it with Sphinx into build/site.

Strict: a broken link or anchor ends the build. Nothing is loaded from another
host, and the search works where the site lies in a directory. Links that leave docs/ lead to copies of those files.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docutils import nodes
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS: Final = Path(__file__).resolve().parent
ROOT: Final = DOCS.parent
SCHEME: Final = "checkout:"
COPIES: Final = "_checkout"
LINK: Final = re.compile(r"\]\((?P<target>(?:\.\./)+[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
LOG: Final = logging.getLogger(__name__)

project = "ioweir"
author = "ioweir contributors"
html_title = "ioweir"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["**/*.ipynb"]
myst_heading_anchors = 4
myst_url_schemes = ["http", "https", "mailto", SCHEME.removesuffix(":")]
highlight_language = "none"
nitpicky = True
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_static_path: list[str] = []


def _generate_pages() -> None:
    """Write the reference pages that are not kept, from spec/, as `tools/generate.py --docs` does."""
    sys.path.insert(0, str(ROOT / "tools"))
    import generate  # noqa: PLC0415
    from generator import functions, records  # noqa: PLC0415
    from generator.spec import load  # noqa: PLC0415

    spec = load(ROOT / "spec")
    generate.write_all(DOCS / "reference", {**functions.pages(spec), **records.pages(spec)})


def _list_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Put pages that no list of index.md names behind those of their folder, if the folder has no list of its own."""
    if page != "index":
        return
    found = app.env.found_docs
    for name in sorted(found - {"index"}):
        if f"{name.rpartition('/')[0]}/index" in found:
            continue
        last = [*re.finditer(rf"^{re.escape(name.split('/')[0])}/[\w-]+\n", source[0], re.MULTILINE)][-1:]
        if last and f"\n{name}\n" not in source[0]:
            source[0] = f"{source[0][: last[0].end()]}{name}\n{source[0][last[0].end() :]}"


def _mark_links(app: Sphinx, page: str, source: list[str]) -> None:
    """Give links that leave docs/ a scheme of their own; one that leads nowhere is a warning."""
    docs = Path(app.srcdir)
    folder, root = (docs / page).parent, docs.parent

    def marked(found: re.Match[str]) -> str:
        target = (folder / found["target"]).resolve()
        if target.is_relative_to(docs):
            return found[0]
        if not target.is_relative_to(root) or not target.exists():
            LOG.warning("'%s' is not there", found["target"], location=page)
            return found[0]
        return f"]({SCHEME}{target.relative_to(root)})"

    source[0] = LINK.sub(marked, source[0])


def _resolve_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Lead them to copies of the files. Directories are named and have no link."""
    up, root = "../" * page.count("/"), Path(app.srcdir).parent
    for link in list(doctree.findall(nodes.reference)):
        uri = link.get("refuri", "")
        if not uri.startswith(SCHEME):
            continue
        path = uri.removeprefix(SCHEME)
        if (root / path).is_dir():
            link.replace_self(link.children)
            continue
        # As text: browsers show that, and save what they do not know.
        copy = f"{COPIES}/{path}.txt"
        link["refuri"] = up + copy
        target = Path(app.outdir) / copy
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    _generate_pages()
    app.connect("source-read", _list_pages)
    app.connect("source-read", _mark_links)
    app.connect("doctree-resolved", _resolve_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
