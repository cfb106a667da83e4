#!/usr/bin/env python3
"""Makes a container image that contains only the program: an OCI layout in one tar, for both
architectures.

Works with podman run oci-archive:FILE, skopeo copy oci-archive:FILE, and docker load since version
25.
"""
import argparse
import json
import pathlib
import sys
import time

sys.dont_write_bytecode = True
import archive  # noqa: E402

MEDIA = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Layout:
    """The blobs of an OCI layout, by digest."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def add(self, kind, data, **more):
        """Adds a blob and returns its descriptor."""
        digest = archive.sha256(data)
        self.files[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"{MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(data), **more}

    def add_json(self, kind, document, **more):
        return self.add(kind, as_json(document), **more)


def as_json(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def layer_of(prefix):
    """Returns a tar of the program and its documents. /work is an empty folder on which users
    mount their own."""
    files = {"usr/bin/tpsim": prefix / "bin/tpsim", **archive.files_below(prefix / "share/doc", "usr/share/doc")}
    return archive.tar_of(files, folders={"tmp": 0o1777, "work": 0o755})


def add_image(layout, prefix, arch, labels, created):
    tar = layer_of(prefix)
    layer = layout.add("layer.v1.tar+gzip", archive.gzipped(tar))
    config = layout.add_json("config.v1+json", {
        "architecture": ARCHITECTURES[arch], "os": "linux", "created": created,
        "config": {"Entrypoint": ["/usr/bin/tpsim"], "Env": ["PATH=/usr/bin"], "WorkingDir": "/work", "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{archive.sha256(tar)}"]},
        "history": [{"created": created, "created_by": "tools/release/make_image.py"}]})
    manifest = {"schemaVersion": 2, "mediaType": f"{MEDIA}.manifest.v1+json", "config": config, "layers": [layer],
                "annotations": labels}
    platform = {"architecture": ARCHITECTURES[arch], "os": "linux"}
    return layout.add_json("manifest.v1+json", manifest, platform=platform)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prefix", action="append", required=True, metavar="ARCH=FOLDER")
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True, help="commit that the program was built from")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder")
    options = parser.parse_args()

    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(archive.epoch()))
    key = "org.opencontainers.image."
    labels = {key + "title": "tpsim", key + "description": "Plans the training of large language models",
              key + "version": options.version, key + "revision": options.revision,
              key + "licenses": "Apache-2.0", key + "created": created}
    layout = Layout()
    manifests = []
    for pair in options.prefix:
        arch, _, folder = pair.partition("=")
        if arch not in ARCHITECTURES or not pathlib.Path(folder, "bin/tpsim").is_file():
            sys.exit(f"tools/release/make_image.py: --prefix {pair}: expected {' or '.join(ARCHITECTURES)}=FOLDER, "
                     "and bin/tpsim in the folder")
        manifests.append(add_image(layout, pathlib.Path(folder), arch, labels, created))
    both = layout.add_json("index.v1+json", {
        "schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json", "manifests": manifests, "annotations": labels},
        annotations={key + "ref.name": options.version})
    layout.files["index.json"] = as_json({"schemaVersion": 2, "mediaType": f"{MEDIA}.index.v1+json",
                                          "manifests": [both]})
    archive.write(options.output / f"tpsim-{options.version}-oci.tar", archive.tar_of(layout.files))


if __name__ == "__main__":
    main()
