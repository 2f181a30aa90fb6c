"""The examples for a host say what the app needs: every folder that it writes, its limits, and pinned packages."""

import os
import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from core.files.project import PROJECT
from pages.shared import server

DEPLOY = PROJECT / "deploy"
SERVER = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text())["server"]
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\$", re.M)


def unit() -> str:
    return (DEPLOY / "crossover.service").read_text()


def test_the_service_names_every_place_that_the_app_can_be_told():
    sources = [file.read_text() for folder in ("core", "pages") for file in (PROJECT / folder).rglob("*.py")]
    known = {name for text in sources for name in re.findall(r'"(CROSSOVER_[A-Z]+)"', text)}
    known.remove("CROSSOVER_TRAINING")  # code that a host never runs
    known -= {"CROSSOVER_HOME", "CROSSOVER_MACHINE"}  # of machines of a cluster, which no visitor asks
    assert len(known) >= 6
    assert {name for name in known if f"{name}=" not in unit()} == set()


def test_the_service_may_open_as_much_as_the_app_asks_for_and_write_where_it_is_told_to():
    assert f"LimitNOFILE={server.MOST_DESCRIPTORS}" in unit()
    places = re.findall(r"(?:CROSSOVER_[A-Z]+|HOME|TMPDIR)=(/\S+)", unit())
    writable = ("/var/lib/crossover", "/run/lock/crossover-measurement.lock")
    assert [place for place in places if not place.startswith(writable)] == ["/etc/crossover/crossover.toml"]
    assert "ReadWritePaths=/run/lock/crossover-measurement.lock" in unit()
    assert "f /run/lock/crossover-measurement.lock 0666" in (DEPLOY / "crossover.tmpfiles").read_text()


def test_no_line_of_the_service_stands_twice():
    sections = ConfigParser(strict=True, interpolation=None, allow_no_value=True)
    sections.optionxform = str
    lines = [line for line in unit().splitlines() if not line.startswith(("Environment=", "    "))]
    sections.read_string("\n".join(lines))
    assert sections["Service"]["KillMode"] == "process"


def test_nothing_watches_the_folder_while_it_measures():
    """A watcher of the virtual environment beside the app would take a core from what is measured."""
    assert SERVER["fileWatcherType"] == "none"


def test_the_proxies_let_through_what_the_app_takes():
    most = SERVER["maxUploadSize"]
    for name, pattern in (("nginx.conf", r"client_max_body_size (\d+)m"), ("Caddyfile", r"max_size (\d+)MB")):
        assert int(re.search(pattern, (DEPLOY / name).read_text())[1]) > most


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("nginx.conf", r"limit_conn everybody (\d+);"), ("Caddyfile", r"unhealthy_request_count (\d+)")],
)
def test_the_proxies_let_no_more_connections_in_than_the_service_has_descriptors_for(name, pattern):
    most = int(re.search(pattern, (DEPLOY / name).read_text())[1])
    assert 0 < 4 * most < server.MOST_DESCRIPTORS


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("nginx.conf", ("client_header_timeout", "client_body_timeout", "send_timeout", "keepalive_timeout")),
        ("Caddyfile", ("read_header", "read_body", "idle")),
    ],
)
def test_the_proxies_end_what_comes_too_slowly(name, limits):
    text = (DEPLOY / name).read_text()
    assert [limit for limit in limits if not re.search(rf"^\s+{limit} \d+s", text, re.M)] == []


def test_every_package_of_the_gallery_is_pinned_with_hashes_within_its_bounds():
    text = (DEPLOY / "requirements-gallery.lock").read_text()
    pinned: dict[str, list[Version]] = {}
    for found in PIN.finditer(text):
        pinned.setdefault(found["name"], []).append(Version(found["version"]))
    assert text.count("==") == sum(map(len, pinned.values()))
    assert "://" not in text
    for part in PIN.split(text)[4::4]:
        assert "--hash=sha256:" in part
    asked = [
        line for line in (PROJECT / "requirements-gallery.txt").read_text().splitlines() if line and line[0] != "#"
    ]
    for requirement in map(Requirement, asked):
        assert all(version in requirement.specifier for version in pinned[requirement.name])


def test_the_guide_for_hosts_names_every_example():
    guide = (PROJECT / "docs" / "hosting.md").read_text()
    assert [file.name for file in DEPLOY.iterdir() if f"deploy/{file.name}" not in guide] == []


@pytest.mark.skipif(sys.platform == "win32", reason="Slurm's commands are of Unix")
def test_the_script_for_slurm_starts_ray_on_every_node_and_then_the_sweep_that_it_was_given(tmp_path):
    """Slurm, Ray and Python by doubles that write down how they were called; Ray's go on until they are ended."""
    called = f'echo "$(basename "$0") $CROSSOVER_MACHINE $CROSSOVER_JOBS $RAY_ADDRESS $*" >> {tmp_path}/called\n'
    doubles = {
        "srun": f'{called}while [ "${{1#-}}" != "$1" ]; do shift; done\n'
        "trap 'kill $(jobs -p)' TERM\n"
        'for node in one two three; do SLURMD_NODENAME=$node "$@" & done; wait',
        "ray": f'{called}[ "$1" = start ] && exec sleep 600 || exit 0',
        "python": f"while [ $(grep -c 'ray .* start' {tmp_path}/called) -lt 3 ]; do :; done\n{called}exit 3",
    }
    for name, text in doubles.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    slurm = {"SLURM_JOB_ID": "47", "SLURMD_NODENAME": "one", "SLURM_SUBMIT_DIR": str(PROJECT)}
    told = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "CROSSOVER_PYTHON": f"{tmp_path}/python"}
    words = ["--dataset", "signal", "--devices", "cpu,cuda:0"]
    done = subprocess.run(
        ["bash", DEPLOY / "slurm/ray.sbatch", *words], env={**slurm, **told, "TMPDIR": str(tmp_path)}, check=False
    )
    lines = (tmp_path / "called").read_text().splitlines()
    jobs, mark = f"{tmp_path}/crossover-47", """--resources={"crossover_machine": 1}"""
    start = f"start --block --disable-usage-stats {mark}"
    assert done.returncode == 3
    assert sorted(line for line in lines if " start " in line) == sorted(
        [
            f"ray one {jobs}-one  {start} --head --port=20047 --include-dashboard=false",
            *[f"ray {node} {jobs}-{node}  {start} --address=one:20047" for node in ("two", "three")],
        ]
    )
    assert [line.split()[1:3] for line in lines if line.startswith("srun")] == [["--mem=0", "--cpu-bind=none"]]
    assert lines[-1] == "python   one:20047 -m core sweep --dataset signal --devices cpu,cuda:0 --on ray"
