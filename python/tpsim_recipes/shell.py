"""Finds the commands that a shell script starts, and what they depend on that the script does not state.

The script runs under bash in a jail (shell_jail.py). Then shell_unknown.py finds what its commands depend on.
"""
import argparse
import glob
import json
import os
import pathlib
import re
import shlex
import sys

from . import isolation, shell_jail
from .shell_names import NAME, traced, without_placeholders
from .shell_unknown import ROUNDS, Analysis, folders_above, key_of, made_name

FOLDERS_ABOVE = 4
REPEATED = 8  # a program that runs more often is what the script waits for
RANKS = "RANK NODE_RANK PET_NODE_RANK LOCAL_RANK OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK PMI_RANK JOB_COMPLETION_INDEX".split()
USUAL = re.compile(r"/(activate|deactivate|\.?bashrc|\.?(bash_)?profile|conda\.sh|setvars\.sh|set_env\.sh)$|^/etc/")


class Script:
    """A script with what is given: runs it, each time with other values of what is unknown."""

    def __init__(self, arguments):
        self.text = without_placeholders(pathlib.Path(arguments.file).read_text(encoding="utf-8", errors="surrogateescape"))
        self.path = os.path.abspath(arguments.path)
        self.folder = os.path.dirname(self.path)
        self.visible = visible_of(self.folder)
        self.given = dict(one.partition("=")[::2] for one in arguments.set)
        self.arguments = shlex.split(self.given.pop("@", ""))
        for number in sorted(int(name) for name in self.given if name.isdigit() and int(name) < 1000):
            self.arguments += [""] * (number - len(self.arguments))
            self.arguments[number - 1] = self.given.pop(str(number))
        self.answers = arguments.answer
        self.trusted, self.runs = arguments.trust, arguments.run
        self.ranks = ranks_in(self.text)
        self.waits = ""  # commands for whose output the script waits in a loop
        self.made = [made_name(name) for name, given, _ in (one.partition("=") for one in self.answers) if given and made_name(name)]
        self.processes = len(glob.glob("/proc/[0-9]*"))
        self.unnamed = {name: value for name, value in self.given.items() if re.fullmatch(NAME, name)}

    def start(self, values=None, words=(), **setup):
        """Starts a run and returns a function that waits for the result. `values`: of variables, `words`: arguments."""
        pins = "\n".join(f"{name}={shlex.quote(value)}; export {name}" for name, value in self.unnamed.items())
        pins += f"\nset -T; trap -- {shlex.quote(pins.replace(chr(10), '; '))} DEBUG" if pins else ""
        home = os.path.expanduser("~")
        setup = {"outputs": "", "failing": "", "waits": self.waits, "answers": "".join(f"{one}\n" for one in self.answers), "pins": pins, "runs": self.runs,
                 "text": self.text, "script": self.path, "folder": self.folder, "visible": self.visible, "made": self.made, "processes": self.processes,
                 "arguments": self.arguments or list(words), **setup,
                 "environment": {"HOME": home, "USER": os.path.basename(home), "LANG": "C", "TERM": "dumb", **self.ranks, **(values or {}), **self.unnamed}}

        def work(why_not):
            if not why_not:
                return shell_jail.run(setup, "")
            if not self.trusted:
                return {}
            import tempfile  # pylint: disable=import-outside-toplevel
            with tempfile.TemporaryDirectory(prefix="tpsim-") as setup["scratch"]:
                if not os.path.exists(setup["script"]):
                    setup["script"] = setup["scratch"] + "/script"
                    pathlib.Path(setup["script"]).write_text(setup["text"], encoding="utf-8", errors="surrogateescape")
                return shell_jail.run(setup, why_not)
        return isolation.begin(work, lambda: shell_jail.enter(self.visible, self.folder), shell_jail.CPU_SECONDS, 2 * shell_jail.WALL_SECONDS)

    def base(self):
        """Runs the script until nothing is missing that can be made: sourced files, programs, another working folder."""
        for _ in range(ROUNDS):
            run = self.ended(self.start()())
            is_bare = run.get("tpsim_recipe", {}).get("not_isolated")
            missing = [] if run.get("stopped", "-") or is_bare else missing_of(self.without_unbound(run), self.folder)
            above = next((one for one in folders_above(self.folder, self.visible) for name in missing if not name.startswith("/")
                          and os.path.isfile(f"{one}/{name}")), None)
            fresh = [one for one in (os.path.join(self.folder, name) + self.of_same_repository(name) for name in missing) if one not in self.made]
            if above and self.folder == os.path.dirname(self.path):
                self.folder = above
            elif fresh:
                self.made = [*self.made, *fresh]
            else:
                break
        return run

    def without_unbound(self, run):
        """Returns the run with values for the variables without which `set -u` ends the script, to find what the script misses behind."""
        values = {}
        for _ in range(ROUNDS):
            fresh = set(re.findall(rf"({NAME}): unbound variable", run["errors"])) - set(values)
            if not fresh:
                break
            values.update(dict.fromkeys(fresh, "unset"))
            run = self.start(values)()
        return run

    def of_same_repository(self, name):
        """Returns "\\0" and the visible file or folder whose path ends as `name` does, in two parts or more; "" if none exists."""
        parts = os.path.normpath(os.path.join(self.folder, name)).split("/")
        above = [os.path.dirname(self.path), *folders_above(os.path.dirname(self.path), self.visible)]
        ends = ("/".join([one, *parts[at:]]) for at in range(1, len(parts) - 1) for one in above if not name.endswith("!"))
        found = next((one for one in ends if (os.path.isdir if name.endswith("/") else os.path.isfile)(one)), "")
        return found and "\0" + found

    def ended(self, run):
        """Returns a run that ends, if the script waits until a program prints a large number: for all GPUs of a cluster to join."""
        if not run.get("stopped") or self.waits:
            return run
        said = [" ".join(one["words"]) + " " for one in run["commands"] if one["captured"]]
        self.waits = "".join(f"{one}\0" for one in {*said} if said.count(one) > REPEATED)
        other = self.start()() if self.waits else run
        texts = [*other.get("files", {}).values(), *(word for one in other.get("commands", []) for word in one["words"])]
        if other.get("stopped", "-") or any(str(shell_jail.ENDS_WAIT) in text for text in texts):
            self.waits = ""  # the number is used elsewhere, too
            return run
        return other


def ranks_in(text):
    """Returns the variables of ranks that the text expands but does not test for being set. The plan is that of the first rank."""
    return {name: "0" for name in RANKS if re.search(rf"\$\{{?{name}\b", text) and not re.search(rf"-[nz] \"?\$\{{?{name}\b", text)}


def visible_of(folder):
    """Returns the folder of which a script in `folder` sees all files: up to four folders above, below the home folder."""
    kept = {"/", os.path.expanduser("~"), os.path.dirname(os.path.expanduser("~")), "/home", "/tmp", "/var", "/var/tmp", "/opt", "/mnt"}
    for _ in range(FOLDERS_ABOVE):
        above = os.path.dirname(folder)
        if above in kept or os.path.isdir(folder + "/.git"):
            break
        folder = above
    return folder


def missing_of(run, folder):
    """Returns sourced files, programs ("!" at the end) and folders of written files ("/") that do not exist, by path."""
    missing = []
    for _, words in traced(run):
        if re.match(NAME + r"\+?=\(", words[0] if words else ""):
            continue  # an array
        words = words[next((i for i, word in enumerate(words) if not re.match(NAME + r"\+?=", word)), len(words)):]
        if len(words) > 1 and words[0] in ("source", "."):
            missing.append(words[1])
        elif len(words) > 1 and words[0] in ("bash", "sh") and words[1].endswith(".sh"):
            missing.append(words[1])
        elif len(words) == 2 and words[0] in ("cd", "pushd"):
            missing.append(words[1].rstrip("/") + "/")
        elif words and "/" in words[0] and words[0][0] in "./~" and not words[0].endswith("/"):
            missing.append(words[0] + "!")
    missing += [word for one in run["commands"] for word in one["words"][1:] if re.fullmatch(r"[\w./-]+\.(sh|slurm|sbatch)", word)]
    found = re.findall(r"^(?:.*: )?(?:\S*/)?(?:bash|cat|sed: can't read|line \d+): ((?:[^:\n]|:(?! ))+): No such file or directory$", run["errors"], re.MULTILINE)
    missing += [one if one.endswith(".sh") or not os.path.dirname(one) else os.path.dirname(one) + "/" for one in found]
    moved = [words[1].rstrip("/") for _, words in traced(run) if len(words) == 2 and words[0] == "cd" and words[1].startswith("/")]
    missing += [f"{place}/{os.path.dirname(one)}/" for place in moved for one in found if os.path.dirname(one) and not one.startswith("/")]
    missing += re.findall(r": (?:cannot [\w ]+ ')?(/[^\n':]+)'?: No such file or directory$", run["errors"], re.MULTILINE)
    missing += re.findall(r": cannot stat '([^/\n'][^\n']*)': No such file or directory$", run["errors"], re.MULTILINE)
    return [one for one in dict.fromkeys(missing) if one.strip("!/-") and one + "/" not in missing and not exists(one.removesuffix("!"), folder, run)]


def exists(path, folder, run):
    place = os.path.normpath(os.path.join(folder, path))
    return os.path.exists(place) or place in run["files"]


def answer_of(arguments):
    try:
        return analysed(Script(arguments))
    except isolation.Failed as failed:
        return {"error": f"the script {failed}"}


def analysed(script):
    found = Analysis(script)
    ranks = {**ranks_in("\n".join(found.run.get("texts", {}).values())), **script.ranks}
    if ranks != script.ranks:
        script.ranks = ranks
        found = Analysis(script)
    run = found.run
    why_not = run["tpsim_recipe"]["not_isolated"]
    if why_not and not script.trusted:
        return {"not_isolated": why_not}
    if run["stopped"]:
        programs = [*dict.fromkeys(key_of(one["words"]) for one in reversed(run["commands"]) if one["captured"])]
        return {"error": "the script " + run["stopped"], "hint": f"it may wait for a program: add --answer '{programs[0]}=TEXT'" if programs else ""}
    commands, variants = found.all()
    unused = [one for one in script.answers if one.replace("/", "_") not in run["used"]]
    missing = [os.path.relpath(one, script.folder) if one.startswith(script.visible) else one
               for one in script.made if not one.endswith(("!", "/", "*")) and "\0" not in one and not any(answer.startswith(one + "=") for answer in script.answers)]
    return {"not_isolated": why_not, "commands": commands, "variants": variants, "variables": run["variables"],
            "used": sorted(found.used_names), "files": found.files, "folder": script.folder,
            "replaced": [": ".join(os.path.relpath(part, script.visible) if part.startswith(script.visible + "/") else part for part in one.split("\0"))
                         for one in script.made if "\0" in one],
            "missing": [one for one in missing if not USUAL.search("/" + one)], "asked": found.asked_before_exit(),
            "unused": unused, "programs": [*dict.fromkeys(key_of(one["words"]) for one in run["commands"] if one["captured"])]}


def main():
    parser = argparse.ArgumentParser(prog="tpsim_recipes.shell", description="Run a shell script among stubs.")
    parser.add_argument("file", help="the text of the script")
    parser.add_argument("--path", required=True, help="path of the script")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--answer", action="append", default=[], metavar="COMMAND=TEXT")
    parser.add_argument("--run", action="store_true", help="run the script's own Python for values that it prints")
    parser.add_argument("--trust", action="store_true", help="run without isolation if the system does not allow it")
    json.dump(answer_of(parser.parse_args()), sys.stdout)


if __name__ == "__main__":
    main()
