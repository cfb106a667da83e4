#!/usr/bin/env python3
"""Makes tpsim-VERSION.spdx.json, the bill of materials in SPDX 2.3. It lists programs, libraries
and data from NOTICE.

--packages aarch64=FILE lists the packages that were linked for another architecture, one "PACKAGE
VERSION" per line. The versions of all others, including the cross compiler's packages, are read
from dpkg.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import archive  # noqa: E402
import notice  # noqa: E402

DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def installed_version(package):
    asked = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package],
                           capture_output=True, text=True, check=False)
    if asked.returncode != 0 or not asked.stdout:
        sys.exit(f"tools/release/make_sbom.py: {package} is not installed; tools/install_packages.sh installs it")
    return asked.stdout


def stated_versions(path):
    return dict(line.split() for line in pathlib.Path(path).read_text().splitlines() if line.strip())


def linked_package(name, arch, stated):
    """Returns (package, version) of a library that is linked into the program of an
    architecture."""
    if name in stated.get(arch, {}):
        return name, stated[arch][name]
    if arch in stated and name in ("libc6-dev", "libstdc++-12-dev"):
        name += "-arm64-cross"
    return name, installed_version(name)  # of this machine, the cross compiler or the web page


def identifier(*parts):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(parts)).strip("-")


def package(name, spdx_id, version, licence, **more):
    return {"name": name, "SPDXID": spdx_id, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **more}


def program(arch, path, version):
    """Returns the SPDX package of the program of one architecture."""
    return package(f"tpsim ({arch})", identifier("tpsim", arch), version, "Apache-2.0",
                   copyrightText="Copyright 2026 The tpsim authors", primaryPackagePurpose="APPLICATION",
                   checksums=[{"algorithm": "SHA256", "checksumValue": archive.sha256(path.read_bytes())}])


def library(entry, name, arch, version):
    suite = "all" if name.endswith("-cross") else DEBIAN_ARCHITECTURES[arch]
    purl = f"pkg:deb/debian/{name.replace('+', '%2B')}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={suite}"
    return package(f"{entry.name} ({name})", identifier(name, arch), version, entry.licence,
                   primaryPackagePurpose="LIBRARY", supplier="Organization: Debian",
                   externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": purl}])


def data(entry, version):
    licence = "NOASSERTION" if entry.licence == "Figures" else entry.licence
    comment = ("Figures taken from publications. " if entry.licence == "Figures" else "") + ", ".join(entry.files)
    return package(entry.name, identifier("data", entry.name), version, licence, comment=comment)


def relation(left, kind, right):
    return {"spdxElementId": left, "relationshipType": kind, "relatedSpdxElement": right}


def document(version, programs, stated):
    """Returns the SPDX document. programs: {arch: path}; stated: {arch: {package: version}} of
    other architectures."""
    found, relations = [], []
    sources = [data(entry, version) for entry in notice.data_sources()]
    for arch, path in programs.items():
        made = program(arch, path, version)
        found.append(made)
        relations.append(relation("SPDXRef-DOCUMENT", "DESCRIBES", made["SPDXID"]))
        for entry in notice.libraries():
            for name in entry.packages:
                linked, at = linked_package(name, arch, stated)
                found.append(library(entry, linked, arch, at))
                relations.append(relation(made["SPDXID"], "STATIC_LINK", found[-1]["SPDXID"]))
        relations += [relation(made["SPDXID"], "CONTAINS", source["SPDXID"]) for source in sources]
    digests = "-".join(made["checksums"][0]["checksumValue"][:16] for made in found if "checksums" in made)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"tpsim-{version}", "documentNamespace": f"https://tpsim.invalid/spdx/tpsim-{version}-{digests}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(archive.epoch())),
                         "creators": ["Organization: The tpsim authors", "Tool: tools/release/make_sbom.py"]},
        "packages": found + sources, "relationships": relations}


def pairs(values, option):
    found = {}
    for value in values:
        arch, _, path = value.partition("=")
        if arch not in DEBIAN_ARCHITECTURES or not pathlib.Path(path).is_file():
            sys.exit(f"tools/release/make_sbom.py: {option} {value}: expected x86_64=FILE or aarch64=FILE")
        found[arch] = pathlib.Path(path)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", required=True, metavar="ARCH=FILE")
    parser.add_argument("--packages", action="append", default=[], metavar="ARCH=FILE")
    parser.add_argument("--version", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder")
    options = parser.parse_args()
    stated = {arch: stated_versions(path) for arch, path in pairs(options.packages, "--packages").items()}
    made = document(options.version, pairs(options.program, "--program"), stated)
    archive.write(options.output / f"tpsim-{options.version}.spdx.json", (json.dumps(made, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
