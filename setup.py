"""Build the wheel: one package, `crossover`, of what lies in several folders of the repository.

`core` becomes `crossover` itself; the pages, the app's file, its settings, the examples and the data that ship become
folders of it. In the clone, pages import `core` and `pages`; in the wheel these imports name `crossover`, so that a
project's own `core` and `pages` are left alone. Everything else about the package is in pyproject.toml.
"""

import importlib.util
import json
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROJECT = Path(__file__).parent
SHIPPED = (
    "streamlit_app.py",
    ".streamlit/config.toml",
    "pages/**/*.py",
    "pages/**/*.css",
    "pages/**/*.js",
    "examples/**/*.py",
    "deploy/slurm/ray.sbatch",
    "data/gallery/compacted-*",
    "data/published/*",
    "data/predict/*",
    "core/**/*.j2",
)
"""Files that the wheel holds besides the modules of `core`."""

RENAMED = (
    (r"(?m)^(\s*)from core(?=[. ])", r"\1from crossover"),
    (r"(?m)^(\s*)from pages(?=[. ])", r"\1from crossover.pages"),
    (r"(?m)^(\s*)import core$", r"\1import crossover as core"),
    (r"(?<=[\"`])core(?=\.[a-z])", "crossover"),
    (r"python -m core(?![.\w])", "crossover"),
    (r"(?<=-m )core\b", "crossover"),
)
"""What the repository calls itself → what it is called once installed: imports, names of modules, commands."""


class BuildPackage(build_py):
    """The build step that copies `core` to `crossover`, adds the rest, and renames both in what was copied."""

    def run(self) -> None:
        """Copy and rename."""
        package = Path(self.build_lib) / "crossover"
        if not self.editable_mode:
            shutil.rmtree(package, ignore_errors=True)  # an earlier build's, with what is gone by now
        super().run()
        if self.editable_mode:  # the clone's own folders are used
            return
        for path in list_shipped_files():
            target = package / path.relative_to("core" if path.parts[0] == "core" else ".")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((PROJECT / path).read_bytes())
        for path in package.rglob("*"):
            if path.suffix in (".py", ".j2", ".sbatch"):
                path.write_text(rename(path.read_text(encoding="utf-8")), encoding="utf-8")
        (package / "build.json").write_text(json.dumps(find_origin()), encoding="utf-8")

    def get_source_files(self) -> list[str]:
        """Return what an archive of the sources holds."""
        return [*super().get_source_files(), "requirements.txt", *(path.as_posix() for path in list_shipped_files())]


def list_packages() -> list[str]:
    """Return `crossover` and the packages in it, as the folder `core` has them."""
    folders = sorted(path.parent.relative_to(PROJECT / "core") for path in (PROJECT / "core").rglob("__init__.py"))
    return [".".join(("crossover", *folder.parts)) for folder in folders]


def list_shipped_files() -> list[Path]:
    """Return the files of `SHIPPED`, relative to the repository."""
    found = (path for pattern in SHIPPED for path in sorted(PROJECT.glob(pattern)))
    return [path.relative_to(PROJECT) for path in found if path.is_file()]


def rename(text: str) -> str:
    """Return the text of a file as it is in the wheel."""
    for pattern, replacement in RENAMED:
        text = re.sub(pattern, replacement, text)
    return text


def find_origin() -> dict[str, str]:
    """Return the commit and address of the checkout that is built, by `core.files.project`; it imports nothing else."""
    spec = importlib.util.spec_from_file_location("project", PROJECT / "core" / "files" / "project.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.read_checkout(PROJECT)._asdict()


if __name__ == "__main__":
    setup(packages=list_packages(), package_dir={"crossover": "core"}, cmdclass={"build_py": BuildPackage})
