"""What an installation of a framework downloads: its packages and their bytes, by PyPI's index.

    python3 bench/package_sizes.py torch 'tensorflow[and-cuda]' 'jax[cuda13]'

For each requirement the newest releases that satisfy it and what it requires, as wheels for Linux
x86-64 and one Python (`packaging` must be installed).  The rows of ridge/doctor/installs.toml are
from here; an index that lacks the metadata of an older release counts that release's dependencies
as those of its newest one, and says so.
"""
import argparse
import datetime
import json
import sys
import urllib.parse
import urllib.request

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

INDEX = "https://pypi.org"
GLIBC = [f"manylinux_2_{minor}_x86_64" for minor in range(39, 4, -1)]
PLATFORMS = GLIBC + ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64",
                     "linux_x86_64"]


def read(path):
    with urllib.request.urlopen(urllib.parse.urljoin(INDEX, path), timeout=60) as answer:
        return answer.read().decode()


class Index:
    """Of one Python on Linux x86-64."""

    def __init__(self, python):
        number = tuple(int(part) for part in python.split("."))
        self.tags = set(cpython_tags(number, platforms=PLATFORMS)) | set(
            compatible_tags(number, f"cp{number[0]}{number[1]}", PLATFORMS))
        self.python = Version(python)
        self.environment = {**default_environment(), "python_version": python,
                            "python_full_version": python + ".0", "platform_machine": "x86_64",
                            "sys_platform": "linux", "platform_system": "Linux"}
        self.projects = {}

    def project(self, name):
        if name not in self.projects:
            self.projects[name] = json.loads(read(f"/pypi/{name}/json"))
        return self.projects[name]

    def wheel(self, files):
        for file in files:
            if file["filename"].endswith(".whl") and not file["yanked"]:
                if parse_wheel_filename(file["filename"])[3] & self.tags:
                    return file
        return None

    def newest(self, requirement, name):
        """The newest release with a wheel: version and file."""
        best = None
        for text, files in self.project(name)["releases"].items():
            try:
                version = Version(text)
            except InvalidVersion:
                continue
            if version.is_prerelease or version not in requirement.specifier:
                continue
            file = self.wheel(files)
            if file and (best is None or version > best[0]):
                best = version, file
        return best

    def requires(self, name, version, file):
        info = self.project(name)["info"]
        if Version(info["version"]) == version:
            return info["requires_dist"] or []
        try:
            base = urllib.parse.urljoin(f"{INDEX}/simple/{name}/", file["url"])
            lines = read(base + ".metadata").splitlines()
            return [line[15:] for line in lines if line.startswith("Requires-Dist: ")]
        except OSError:
            print(f"  {name} {version}: dependencies of {info['version']}", file=sys.stderr)
            return info["requires_dist"] or []

    def applies(self, requirement, extras):
        if not requirement.marker:
            return True
        return any(requirement.marker.evaluate({**self.environment, "extra": extra})
                   for extra in extras or {""})


def resolve(index, text):
    """Name to (version, bytes); the first requirement of a package decides."""
    found, waiting, seen = {}, [Requirement(text)], set()
    while waiting:
        requirement = waiting.pop(0)
        name = canonicalize_name(requirement.name)
        key = name, frozenset(requirement.extras)
        if key in seen:
            continue
        seen.add(key)
        newest = found.get(name) or index.newest(requirement, name)
        if newest is None:
            print(f"  {requirement}: no wheel", file=sys.stderr)
            continue
        found[name] = newest
        for line in index.requires(name, *newest):
            other = Requirement(line)
            if index.applies(other, requirement.extras | {""}):
                waiting.append(other)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("requirements", nargs="+")
    options = parser.parse_args()
    index = Index(options.python)
    today = datetime.date.today().isoformat()
    for text in options.requirements:
        found = resolve(index, text)
        name = canonicalize_name(Requirement(text).name)
        total = sum(file["size"] for _, file in found.values())
        print(f"{text} {found[name][0]}, Python {options.python}, {today}: "
              f"{len(found)} packages, {total} bytes")
        if options.verbose:
            for other, (version, file) in sorted(found.items(), key=lambda item: -item[1][1]["size"]):
                print(f"  {other} {version} {file['size']}")


if __name__ == "__main__":
    main()
