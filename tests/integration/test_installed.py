"""The wheel, installed outside the clone beside a project that has a `core` and a `pages` of its own."""

import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from core.files import project
from core.files.project import PROJECT
from core.jobs.queue import Queue
from core.results.store import Store
from pages.shared import layout
from tests.integration.following import until
from tests.ports import free_port

pytestmark = pytest.mark.slow

SOURCES = ("core", "pages", "data/gallery", "data/published", "data/predict", "deploy", "examples", ".streamlit")
FILES = ("streamlit_app.py", "setup.py", "pyproject.toml", "requirements.txt", "README.md", "LICENSE")
COMPILED = shutil.ignore_patterns("__pycache__")
THEIRS = "MINE = 'a package of the project that uses Crossover'\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the sources."""
    copy, built = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        shutil.copytree(PROJECT / name, copy / name, ignore=COMPILED)
    for name in FILES:
        shutil.copy(PROJECT / name, copy / name)
    words = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(built), str(copy))
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True, text=True)
    (found,) = built.glob("*.whl")
    return found


def install(installer: str, wheel: Path, folder: Path) -> Path:
    """A fresh environment with the wheel, whose dependencies are those of this one; returns its Python."""
    python = folder / "Scripts/python.exe" if sys.platform == "win32" else folder / "bin/python"
    if installer == "uv":
        uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        command = [uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python), str(wheel)]
    else:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return python


@pytest.fixture(scope="module", params=["pip", "uv"])
def installed(request, wheel, tmp_path_factory):
    """Runs Python, or `crossover`, in a project of its own where the wheel is installed."""
    folder = tmp_path_factory.mktemp(request.param)
    python = install(request.param, wheel, folder / "venv")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-c", where], text=True).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    work = folder / "work"
    for place in (site, work):
        for name in ("core", "pages"):
            (place / name).mkdir(parents=True)
            (place / name / "__init__.py").write_text(THEIRS)
    ours = {"XDG_DATA_HOME": str(folder / "data"), "CROSSOVER_LOCK": str(folder / "lock")}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSOVER_", "PYTHON"))}
    program = python.with_name("crossover.exe" if sys.platform == "win32" else "crossover")

    def run(*words: str, timeout_s: float = 200) -> str:
        command = [str(program), *words] if words[0] != "-c" else [str(python), *words]
        done = subprocess.run(
            command, cwd=work, env=environment | ours, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        return done.stdout

    yield SimpleNamespace(
        run=run,
        program=program,
        work=work,
        site=site,
        data=folder / "data" / "crossover",
        environment=environment | ours,
    )
    Queue(folder / "data" / "crossover" / "jobs").worker_file.dismiss()


def test_no_module_of_the_wheel_imports_by_a_name_of_the_clone(wheel):
    with zipfile.ZipFile(wheel) as files:
        modules = [name for name in files.namelist() if name.endswith(".py")]
        assert {name.partition("/")[0] for name in modules} == {"crossover"}
        for name in modules:
            for node in ast.walk(ast.parse(files.read(name))):
                imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    imported = [node.module or ""]
                assert not {each.partition(".")[0] for each in imported} & {"core", "pages"}, name


def test_the_wheel_says_everywhere_what_its_user_types(wheel):
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith((".py", ".j2", ".sbatch")):
                assert "-m core" not in files.read(name).decode(), name


def test_a_notebook_has_its_door_beside_a_core_and_pages_of_its_own(installed):
    code = """
import crossover, core, pages
from crossover import Experiment, Point, Store, Sweep, run, watch
print(crossover.__file__)
print(core.MINE == pages.MINE, core.__file__)
"""
    ours, theirs = installed.run("-c", code).splitlines()
    assert Path(ours).is_relative_to(installed.site)
    assert theirs == f"True {installed.work / 'core' / '__init__.py'}"


def test_a_run_is_measured_and_kept_in_the_users_data_folder(installed):
    answer = installed.run("run", "--preset", "disc", "--devices", "cpu@1,cpu@2", "--budget", "2")
    assert "2 CPU threads" in answer
    (first, *_) = trials = Store(installed.data / "results").trials()
    assert {trial.device for trial in trials} == {"cpu"}
    assert first.dataset == "disc"
    assert installed.run("run", "--help").startswith("usage: crossover run")


def test_every_page_is_drawn_from_the_wheel(installed):
    code = f"""
import sys
from pathlib import Path
import crossover
from streamlit.testing.v1 import AppTest
for page in {layout.FILES!r}:
    app = AppTest.from_file(Path(crossover.__file__).with_name("streamlit_app.py"), default_timeout=100)
    app.switch_page(page)
    app.run()
    assert not app.exception, (page, app.exception)
    print(len(app.title) + len(app.header) + len(app.subheader) > 0)
print({{"core", "pages"}} & set(sys.modules))
"""
    *drawn, foreign = installed.run("-c", code).splitlines()
    assert drawn == ["True"] * len(layout.FILES)
    assert foreign == "set()"


def test_the_app_opens_with_the_gallery_that_came_with_it(installed):
    port = free_port()
    words = (f"--server.port={port}", "--server.headless=true")
    server = subprocess.Popen(
        [str(installed.program), "app", "--", *words],
        cwd=installed.work,
        env=installed.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    try:
        until(answers, bool)
    finally:
        server.kill()
        server.wait()
    code = "from crossover.results.store import GALLERY, Store; print(Store(GALLERY).read().table.num_rows)"
    assert int(installed.run("-c", code)) > 100


@pytest.mark.parametrize("is_clone", [False, True], ids=["a wheel", "a copy of a clone without .git"])
def test_what_a_wheel_was_built_from_is_known_to_its_rows(monkeypatch, tmp_path, is_clone):
    built = tmp_path / "build.json"
    built.write_text('{"commit": "0123456789ab", "address": "https://example.org/crossover"}')
    monkeypatch.setattr(project, "IS_CLONE", is_clone)
    monkeypatch.setattr(project, "PROJECT", tmp_path)
    monkeypatch.setattr(project, "BUILD_FILE", built)
    project.find_origin.cache_clear()
    assert project.find_origin() == ("0123456789ab", "https://example.org/crossover")
    built.write_text("[]")
    project.find_origin.cache_clear()
    assert project.find_origin() == ("", "")
    project.find_origin.cache_clear()
