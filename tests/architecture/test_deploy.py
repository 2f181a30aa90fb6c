"""The examples for a host say what the app needs: every folder that it writes, its limits, and pinned packages."""

import re
from configparser import ConfigParser

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from core.files.project import PROJECT
from pages.shared import server

DEPLOY = PROJECT / "deploy"
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


def test_the_proxies_let_through_what_the_app_takes():
    most = int(re.search(r"maxUploadSize = (\d+)", (PROJECT / ".streamlit" / "config.toml").read_text())[1])
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
