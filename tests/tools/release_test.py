"""Metadata of a release: one version everywhere,
and every source of data and libraries in NOTICE."""
import datetime
import fnmatch
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "release"))
sys.dont_write_bytecode = True

import notice  # noqa: E402

FOLDERS = ("campaigns", "clusters", "hub", "left_out", "microbench", "models", "offers", "profiles", "published_runs", "stacks", "strangers")


def text_of(path):
    return (ROOT / path).read_text()


def version():
    return re.search(r"^project\(tpsim VERSION (\d+\.\d+\.\d+) ", text_of("CMakeLists.txt"), re.MULTILINE)[1]


def dated_headings():
    """Returns [version, date] of the headings of CHANGELOG.md, newest first."""
    return re.findall(r"^## (\d+\.\d+\.\d+) \((\S+)\)$", text_of("CHANGELOG.md"), re.MULTILINE)


def citation(key):
    return re.search(rf"^{key}: (\S+)$", text_of("CITATION.cff"), re.MULTILINE)[1]


def table(path):
    """Returns rows of the first table of a README, as [first cell without quotes, last cell]."""
    rows = [line.strip("| ").split("|") for line in text_of(path).splitlines() if line.startswith("| `")]
    return [(row[0].strip().strip("`"), row[-1].strip()) for row in rows]


class OneVersion(unittest.TestCase):
    def test_the_newest_dated_heading_of_the_changelog(self):
        self.assertEqual(dated_headings()[0][0], version())

    def test_headings_are_unreleased_and_then_versions_that_fall_with_their_dates(self):
        headings = re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.MULTILINE)
        self.assertEqual(headings[0], "Unreleased")
        self.assertEqual(headings[1:], [f"{number} ({date})" for number, date in dated_headings()])
        keys = [([int(part) for part in number.split(".")], datetime.date.fromisoformat(date))
                for number, date in dated_headings()]
        self.assertEqual(keys, sorted(keys, reverse=True))

    def test_the_citation(self):
        self.assertEqual((citation("version"), citation("date-released")), dated_headings()[0])
        self.assertEqual(citation("cff-version"), "1.2.0")
        self.assertEqual(citation("license"), "Apache-2.0")

    def test_the_wheel_that_pip_builds_from_source(self):
        pattern = re.search(r"^regex = '(.*)'$", text_of("pyproject.toml"), re.MULTILINE)[1]
        self.assertEqual(re.search(pattern, text_of("CMakeLists.txt"))["value"], version())

    def test_the_files_that_the_readme_names(self):
        named = set(re.findall(r"tpsim[-_](\d+\.\d+\.\d+)", text_of("README.md")))
        self.assertEqual(named, {version()})


class Notice(unittest.TestCase):
    def test_every_data_file_has_a_source(self):
        patterns = [pattern for entry in notice.data_sources() for pattern in entry.files]
        files = [str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / "data" / folder).iterdir()
                 if path.name != "README.md"]
        self.assertGreater(len(files), 150)
        self.assertEqual([f for f in files if not any(fnmatch.fnmatch(f, p) for p in patterns)], [])
        self.assertEqual([p for p in patterns if not fnmatch.filter(files, p)], [])

    def test_every_folder_of_data_is_looked_at(self):
        folders = {path.name for path in (ROOT / "data").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(FOLDERS))

    def test_published_runs_have_the_licences_of_their_readme(self):
        rows = table("data/published_runs/README.md")
        self.assertGreater(len(rows), 5)
        for name, stated in rows:
            licences = {entry.licence for entry in notice.data_sources()
                        if f"data/published_runs/{name}" in entry.files}
            expected = "Figures" if stated == "figures of papers" else stated
            self.assertEqual(licences, {expected}, name)

    def test_repositories_with_a_licence_are_named_in_a_readme_of_the_data(self):
        readmes = "".join(path.read_text() for path in sorted((ROOT / "data").glob("*/README.md")))
        profiles = "".join(path.read_text()[:2000] for path in sorted((ROOT / "data/profiles").glob("*.json")))
        for entry in notice.data_sources():
            if entry.licence == "Figures":
                continue
            for repository in re.findall(r"[\w.-]+/[\w.-]+", entry.name):
                self.assertIn(repository.split("/")[1], readmes + profiles)

    def test_licences_of_data_have_their_text(self):
        texts = text_of("NOTICE").split("Texts of the licences of the data")[1]
        for entry in notice.data_sources():
            if entry.licence != "Figures":
                self.assertRegex(texts, rf"\n{re.escape(entry.licence)}: ")


class Workflows(unittest.TestCase):
    def test_they_call_scripts_of_the_tree_and_actions_of_github_by_commit(self):
        allowed = (".ci/run", "tools/release.sh", "tools/nightly.sh",  # and the commands around
                                                                       # them
                   "apt-get ", "git config ", "cd dist && sha256sum ", "gh release create ")
        workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
        self.assertEqual([path.stem for path in workflows], ["ci", "nightly", "release"])
        for path in workflows:
            for command in re.findall(r"run: (.*)", path.read_text()):
                self.assertTrue(command.startswith(allowed), command)
                script = command.split()[0]
                if "/" in script:
                    self.assertTrue((ROOT / script).is_file(), script)
            for action in re.findall(r"uses: (.*)", path.read_text()):
                self.assertRegex(action, r"^actions/[a-z-]+@[0-9a-f]{40} # v")


if __name__ == "__main__":
    unittest.main()
