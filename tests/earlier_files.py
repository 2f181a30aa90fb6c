"""Folders as version 0.1.0 left them, put where a test may write; see tests/earlier/README.md."""

import json
import shutil
from pathlib import Path
from typing import Any

EARLIER = Path(__file__).parent / "earlier"
NAMES: dict[str, Any] = json.loads((EARLIER / "names.json").read_text())
LINKS: list[dict[str, Any]] = json.loads((EARLIER / "links.json").read_text())


def lay_out(root: Path) -> None:
    """Copy all folders below a root, and tell the jobs that they lie there."""
    for folder in ("results", "gallery", "jobs", "classes"):
        shutil.copytree(EARLIER / folder, root / folder, dirs_exist_ok=True)
    for file in (root / "jobs").rglob("*.json"):
        file.write_text(file.read_text().replace("{root}", str(root)))
