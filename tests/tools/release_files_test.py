"""The scripts of tools/release: reproducible archives,
digests of the files, and a complete SBOM."""
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "tools" / "release"
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
os.environ["SOURCE_DATE_EPOCH"] = "1790000000"

import archive  # noqa: E402
import make_sbom  # noqa: E402
import notice  # noqa: E402


def staged(folder, order):
    """Writes a prefix with a program and two documents, in the given order."""
    contents = {"bin/tpsim": b"\x7fELF", "share/doc/tpsim/NOTICE": b"notice\n", "share/man/man1/tpsim.1": b".TH\n"}
    for name in order(contents):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents[name])
    (folder / "bin/tpsim").chmod(0o700)
    return folder


def run(script, *words):
    subprocess.run([sys.executable, str(SCRIPTS / script), *map(str, words)], check=True)


class Files(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.first = staged(self.place / "first", sorted)
        self.second = staged(self.place / "another/folder", lambda names: sorted(names, reverse=True))
        os.utime(self.second / "bin/tpsim", (1, 1))
        (self.second / "share/doc/tpsim/NOTICE").chmod(0o666)

    def made(self, prefix, script, name, *words):
        output = prefix.parent / "made"
        output.mkdir(exist_ok=True)
        run(script, *words, "--version", "1.2.3", "--output", output)
        return (output / name).read_bytes()

    def tarball(self, prefix):
        return self.made(prefix, "make_tarball.py", "tpsim-1.2.3-x86_64-linux.tar.gz", "--prefix", prefix,
                         "--arch", "x86_64")

    def image(self, prefix):
        return self.made(prefix, "make_image.py", "tpsim-1.2.3-oci.tar", "--revision", "abc", "--prefix",
                         f"x86_64={prefix}", "--prefix", f"aarch64={prefix}")

    def test_a_tarball_is_the_same_from_another_folder_and_of_root(self):
        data = self.tarball(self.first)
        self.assertEqual(data, self.tarball(self.second))
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members = {member.name.partition("/")[2]: member for member in tar.getmembers()}
        self.assertEqual({member.uid for member in members.values()}, {0})
        self.assertEqual({member.mtime for member in members.values()}, {1790000000})
        self.assertEqual((members["bin/tpsim"].mode, members["share/man/man1/tpsim.1"].mode), (0o755, 0o644))

    def test_an_image_is_the_same_from_another_folder_and_every_digest_leads_to_its_blob(self):
        data = self.image(self.first)
        self.assertEqual(data, self.image(self.second))
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            files = {member.name: tar.extractfile(member).read() for member in tar.getmembers() if member.isfile()}
        seen = {"oci-layout", "index.json"}

        def follow(descriptor):
            name = "blobs/" + descriptor["digest"].replace(":", "/")
            self.assertEqual(hashlib.sha256(files[name]).hexdigest(), descriptor["digest"].partition(":")[2])
            self.assertEqual(len(files[name]), descriptor["size"])
            seen.add(name)
            return files[name] if "gzip" in descriptor["mediaType"] else json.loads(files[name])

        both = follow(json.loads(files["index.json"])["manifests"][0])
        self.assertEqual([image["platform"]["architecture"] for image in both["manifests"]], ["amd64", "arm64"])
        for image in both["manifests"]:
            manifest = follow(image)
            self.assertEqual(follow(manifest["config"])["config"]["Entrypoint"], ["/usr/bin/tpsim"])
            layer = follow(manifest["layers"][0])
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                self.assertIn("usr/bin/tpsim", tar.getnames())
                self.assertEqual(tar.getmember("tmp").mode, 0o1777)
        self.assertEqual(seen, set(files))

    def test_without_a_date_nothing_is_made(self):
        environment = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
        done = subprocess.run([sys.executable, str(SCRIPTS / "make_tarball.py"), "--prefix", str(self.first), "--arch",
                               "x86_64", "--version", "1", "--output", str(self.place)], env=environment,
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("SOURCE_DATE_EPOCH is not set", done.stderr)
        self.assertEqual(list(self.place.glob("tpsim-*")), [])

    def test_the_bill_of_materials_names_every_library_and_source_once_and_is_closed(self):
        program = self.first / "bin/tpsim"
        versions = {name: "1:2.3-4" for entry in notice.libraries() for name in entry.packages}
        bill = make_sbom.document("1.2.3", {"x86_64": program}, {"x86_64": versions})
        ids = [package["SPDXID"] for package in bill["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(len(ids), 1 + len(notice.libraries()) + len(notice.data_sources()))
        for spdx_id in ids:
            self.assertRegex(spdx_id, r"^SPDXRef-[A-Za-z0-9.-]+$")
        relations = bill["relationships"]
        self.assertEqual({relation["relatedSpdxElement"] for relation in relations}, set(ids))
        self.assertEqual(sum(relation["relationshipType"] == "STATIC_LINK" for relation in relations),
                         len(notice.libraries()))
        digest = hashlib.sha256(program.read_bytes()).hexdigest()
        self.assertEqual(bill["packages"][0]["checksums"][0]["checksumValue"], digest)
        self.assertIn(digest[:16], bill["documentNamespace"])


class Archive(unittest.TestCase):
    def test_a_file_is_replaced_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "file"
            path.write_bytes(b"old")
            archive.write(path, b"new")
            self.assertEqual(path.read_bytes(), b"new")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [path])


if __name__ == "__main__":
    unittest.main()
