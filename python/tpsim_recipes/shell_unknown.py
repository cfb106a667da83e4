"""Finds what the commands of a shell script depend on that the script does not state.

What is unknown is a variable that the script never assigns, a positional argument, the output and the exit status of a program,
and a file outside of the script's folders. The script runs again with other values of what is unknown: all at once, then the
texts with which it compares them, alone and in pairs. A difference is narrowed down to the fewest values that make it. A value
that is passed on to a command is marked there: "\\x01$NAME\\x02" or "\\x01$(COMMAND)\\x02".
"""
import json
import os
import re
import shutil

from . import isolation, shell_jail
from .shell_names import NAME, SET_BY_BASH, expansions, traced

MARK = re.compile(r"tpsimq([vc])(\d+)q", re.IGNORECASE)
NUMBER, STEP, ARGUMENTS = 790000, 40, 8000  # values of unknown numbers start here, up to shell_jail.NUMBER
MOST_RUNS, MOST_LITERALS, PARALLEL = 160, 8, 4
ROUNDS = 8
LAUNCHERS = ("torchrun", "accelerate", "deepspeed")


def made_name(name):
    """Returns what to create so that a file, folder ("/" at the end) or program exists; "" for other names."""
    return name if name.startswith("/") else f"{shell_jail.BASE}/stubs/{name}!" if re.fullmatch(r"[\w.-]+", name) else ""


def folders_above(folder, visible):
    while folder not in (visible, "/"):
        folder = os.path.dirname(folder)
        yield folder


class Unknown:
    """An unknown value: how messages print the value, and how a run changes it."""

    def __init__(self, kind, name, key=""):
        self.kind, self.name, self.key = kind, name, key

    def shown(self):
        return {"variable": "$" + self.name, "output": f"$({self.name})"}.get(self.kind, self.name)


class Analysis:
    def __init__(self, script):
        self.script = script
        self.usual, self.done, self.found, self.asked, self.scanned = {}, {}, [], set(), 0
        self.run = script.base()
        if self.run.get("stopped", "-"):
            return
        texts = [*self.run["texts"].values(), *(text for name, text in self.run["files"].items() if text.startswith("#!")), script.text]
        plain, required, assigned, numbers = expansions(texts)
        indirect = set(re.findall(rf"\$\{{!({NAME})\}}", "\n".join(texts)))
        for _, words in traced(self.run) if indirect else []:
            name, _, value = words[0].partition("=") if words else ("", "", "")
            plain |= {value} if name in indirect and re.fullmatch(NAME, value) else set()
        self.names = sorted((plain | required) - assigned - SET_BY_BASH - set(script.unnamed) - set(script.ranks) -
                            {name for name in plain if name.startswith(("SLURM_", "_tpsim")) and self.is_set(name)})
        self.numbers = [] if script.arguments else sorted(numbers - {0})
        self.texts = "\n".join(texts)
        self.used_names = plain | required | set(re.findall(rf"\$\{{[#!]?({NAME})", self.texts))

    def captured(self):
        """Returns the commands whose output the script uses, apart from those for which it waits and from logs of trainings."""
        said = {said_of(one) for one in self.run["commands"] if one["captured"] and os.path.basename(one["words"][0]) not in LAUNCHERS}
        return said - {*self.script.waits.split("\0")}

    def is_set(self, name):
        return any(name in one["environment"] for one in self.run["commands"])

    def number_of(self, unknown):
        return int(unknown.name) + 1000 if unknown.name.isdigit() else self.names.index(unknown.name)

    def value(self, unknown, kind):
        """Returns the value of a variable or argument: a mark, a number, or `kind` itself."""
        number = self.number_of(unknown)
        marks = {"text": f"tpsimQv{number}Q", "number": str(NUMBER + (STEP * number if number < 1000 else ARGUMENTS + STEP * (number - 1000)))}
        return marks.get(kind, kind)

    def start(self, changes):
        """Starts a run in which unknown values are others than in the base: a mark, a number or another text."""
        changes = {**self.usual, **changes}
        marks = {one.name: self.value(one, kind) for one, kind in changes.items() if one.kind == "variable" and not one.name.isdigit()}
        places = {int(one.name): self.value(one, kind) for one, kind in changes.items() if one.name.isdigit()}
        words = [places.get(i, "") for i in range(1, max(places, default=0) + 1)]
        outputs = {one.key: kind for one, kind in changes.items() if one.kind == "output"}
        if len(set(outputs.values())) == 1 and self.captured() <= {*outputs}:
            outputs["*"] = next(iter(outputs.values()))  # of programs, too, that only this run starts
        outputs = "".join(f"{key}\0{shell_jail.NUMBER if kind == 'number' else kind}\0" for key, kind in outputs.items())
        failing = "".join(f"{one.key}\0" for one in changes if one.kind == "status")
        made = [one.key for one in changes if one.kind == "file"]
        return self.script.start(marks, words, outputs=outputs, failing=failing, made=self.script.made + made)

    def runs(self, several):
        """Runs the script with each of several changes. Each change is run once."""
        several = [*{frozenset(one.items()): one for one in several}.items()]
        fresh = [(key, one) for key, one in several if key not in self.done]
        if len(self.done) + len(fresh) > MOST_RUNS:
            names = dict.fromkeys(one.shown() for _, changes in fresh for one in changes if one not in self.asked)
            raise isolation.Failed(f"depends on more unknown values than can be tried: {', '.join(names)}")
        for at in range(0, len(fresh), PARALLEL):
            for key, finish in [(key, self.start(one)) for key, one in fresh[at:at + PARALLEL]]:
                self.done[key] = finish()
        return [(one, self.done[key]) for key, one in several if key in self.done]

    def named(self, word, run):
        """Returns the word with each mark replaced by "\\x01", the name of what is unknown and "\\x02"."""
        def name_of(match):
            number = int(match[2])
            if match[1] in "vV":
                return f"\x01${self.names[number] if number < 1000 else number - 1000}\x02"
            command = next((one for one in run["commands"] if one["number"] == match[2]), None)
            return f"\x01$({key_of(command['words']) if command else '?'})\x02"
        word = MARK.sub(name_of, word)
        return re.sub(rf"(?<!\d){NUMBER // 10000}\d{{4}}(?!\d)", lambda match: self.name_of_number(int(match[0]) - NUMBER), word)

    def name_of_number(self, number):
        if 0 <= number < ARGUMENTS and number % STEP == 0 and number // STEP < len(self.names):
            return f"\x01${self.names[number // STEP]}\x02"
        if ARGUMENTS < number < shell_jail.NUMBER - NUMBER and (number - ARGUMENTS) % STEP == 0:
            return f"\x01${(number - ARGUMENTS) // STEP}\x02"
        return "\x01$(?)\x02" if number == shell_jail.NUMBER - NUMBER else str(number + NUMBER)

    def marked(self, base, run):
        """Returns the commands of `run` with marks if they differ from those of `base` by marked values alone; else None."""
        mine, others = (trainings(one["commands"]) for one in (base, run))
        if not others and mine:
            return mine  # the script ended before: it needs another value
        if len(mine) != len(others):
            return None
        result = []
        for one, other in zip(mine, others):
            words, at = [], 0
            for word in other["words"]:
                here = one["words"][at] if at < len(one["words"]) else None
                named = self.named(word, run)
                bare = bare_of(named)
                if word == here or named != word and bare == here:
                    at += 1
                elif named == word or bare.strip():
                    return None
                words.append(named if named == word or here == bare else "\x01" + named)  # twice: an inserted word
            if at != len(one["words"]):
                return None
            result.append({**one, "words": words})
        files = self.files_of(run)
        differ = any(files.get(path, text) != text and bare_of(files[path]) != text for path, text in base["files"].items())
        return None if differ else result

    def filled(self, text, changes):
        """Returns the text with the values of `changes` in place of marks."""
        values = {one.shown(): self.value(one, kind) if one.kind == "variable" else kind for one, kind in changes.items()}
        return re.sub("\x01+([^\x01\x02]*)\x02", lambda match: values.get(match[1], ""), text)

    def differs(self, changes, run):
        """Whether the commands, or the files that they may read, are others than those of the base, apart from marks."""
        if self.marked(self.base, run) is not None:
            return False
        expected = [[self.filled(word, changes) for word in one["words"] if not word.startswith("\x01\x01") or self.filled(word, changes)]
                    for one in self.commands]
        found = [one["words"] for one in trainings(run["commands"])]
        files = {path: self.filled(text, changes) for path, text in self.files.items()}
        return expected != found or any(files.get(path, text) != text for path, text in run["files"].items())

    def causes(self, several):
        """Finds the smallest changes among `several` that make a difference. They and their runs are in `found`, the unknowns in `asked`."""
        for changes, run in self.runs(several):
            if self.differs(changes, run):
                self.cause(changes, run)

    def cause(self, changes, run):
        fewer = {one: kind for one, kind in changes.items() if one not in self.asked}
        if len(changes) > 1 and len(fewer) < len(changes):
            return self.causes([fewer] if fewer else [])
        items = [*changes.items()]
        parts = [] if len(items) == 1 else [dict(items[:len(items) // 2]), dict(items[len(items) // 2:])]
        self.causes(parts)
        if self.asked & changes.keys() and parts:
            return self.cause(changes, run)
        for one in items if parts else []:  # they matter only together
            less = {key: kind for key, kind in changes.items() if key is not one[0]}
            for _, other in self.runs([less]) if less else []:
                if self.differs(less, other):
                    changes, run = less, other
        self.found.append((changes, run))
        self.asked |= changes.keys()
        return None

    def files_of(self, run):
        """Returns the files that the script wrote, by path, with marks in their texts."""
        return {re.sub("[\x01\x02]", "", self.named(path, run)): self.named(text, run) for path, text in run["files"].items()}

    def all(self):
        """Returns the commands with marks, and the variants."""
        self.reach_training()
        self.base, self.files, self.commands = self.run, self.run["files"], trainings(self.run["commands"])
        outputs = {said_of(one): one for one in self.run["commands"] if said_of(one) in self.captured()}
        values = [Unknown("variable", name) for name in [*self.names, *map(str, self.numbers)]]
        values += [Unknown("output", key_of(one["words"]), said) for said, one in outputs.items()]
        states = {said_of(one): one for one in self.run["commands"] if not is_training(one["words"]) and said_of(one) not in self.script.waits.split("\0")}
        states = [Unknown("status", key_of(one["words"]), said) for said, one in states.items()]
        files = [Unknown("file", name, made_name(name)) for name in self.tested()]
        text, number = ({one: kind for one in values} for kind in ("text", "number"))
        first = [one for one in (text, number, {one: "fails" for one in states}, {one: "exists" for one in files}) if one]
        self.runs(first)
        ends_early = not self.commands or "unbound variable" in self.base["errors"]
        without_arguments = {one: kind for one, kind in text.items() if not one.name.isdigit()}
        for usual in (text, without_arguments) if ends_early else ():
            for _, run in self.runs([usual] if usual else []):
                if len(trainings(run["commands"])) > len(self.commands):
                    self.base, self.usual, self.done = run, usual, {}
                    self.commands, self.files = self.plain(self.base), self.files_of(self.base)
        self.causes(first)
        firm = {one: "text" for one in values if one not in self.asked}
        for _, run in self.runs([firm]) if firm and not self.usual else []:
            self.commands = self.marked(self.base, run) or self.commands
            self.files = {**self.base["files"], **self.files_of(run)}
        deciding = {one: ["fails"] for one in states if self.is_asked(one)} | {one: ["exists"] for one in files}
        before = None
        while deciding != before:
            before = {one: [*several] for one, several in deciding.items()}
            self.add_compared(values, deciding)
            self.causes([{one: value} for one, several in deciding.items() for value in several])
            open_ones = {one: several for one, several in deciding.items() if one not in self.asked}
            firm = {one: "text" for one in values if one not in self.asked}
            self.causes([{**firm, one: value} for one, several in open_ones.items() for value in several if value != "text"])
            self.causes(combined({one: several for one, several in open_ones.items() if one not in self.asked}))
        variants = {}
        for changes, run in self.found:
            for one in changes:
                variant = {"unknown": one.shown(), "kind": one.kind, "commands": self.plain(run), "files": self.files_of(run)}
                variants[json.dumps([one.shown(), [command["words"] for command in variant["commands"]]])] = variant
        return self.commands, [*variants.values()]

    def add_compared(self, values, deciding):
        """Adds texts with which the script compares unknown values, by their value."""
        def add(one, literal):
            known = deciding.setdefault(one, [])
            if literal not in known and len(known) < MOST_LITERALS:
                known.append(literal)
        by_name = {one.shown(): one for one in values}
        for run in [self.run, *self.done.values()][self.scanned:]:
            self.scanned += 1
            assigned = {}
            for place, words in traced(run):
                assigned.update(match.groups() for match in (re.match(rf"({NAME})\+?=(.*)", word) for word in words) if match)
                if not words or words[0] not in ("[", "[[", "test", "case", "((", "let"):
                    continue
                is_raw = words[0] in ("case", "((", "let")  # not expanded in the trace
                text = re.sub(rf"\$\{{?({NAME})\}}?", lambda match: assigned.get(match[1], match[0]), " ".join(words)) if is_raw else " ".join(words)
                named = self.named(text, run)
                names = re.findall("\x01([^\x02]*)\x02", named)
                names += ["$" + name for name in re.findall(rf"(?<![\w\x01]){NAME}|\d+(?=\}})", named)] if is_raw or words[0] == "[[" else []
                names = [name for name in names if name in by_name] or (by_name if words[0] == "case" and "$" in named else [])
                compared = self.patterns(place, run) if words[0] == "case" else compared_of(words)
                for name in names:
                    for literal in ["text", *compared]:
                        add(by_name[name], literal)
        for literal in self.literals():
            for one in values:
                add(one, literal)

    def patterns(self, place, run):
        """Returns the patterns of the case command in the line `place`."""
        file, _, line = place.rpartition(":")
        lines = run["texts"].get(file, "").split("\n")[int(line) - 1 if line.isdigit() else 0:]
        text = re.split(r"\besac\b", "\n".join(lines))[0].partition(" in")[2]
        return literals_in([one for group in re.findall(r"(?:^|;;&?|\n)\s*\(?([^()\n;]+)\)", text) for one in group.split("|")])

    def is_asked(self, state):
        """Whether the script tests the exit status of a command."""
        name = re.escape(state.name.split(" ")[0])
        ways = (rf"\b(?:if|elif|while|until)\b[^\n]*\b{name}\b", rf"\b{name}\b[^\n;]*(?:&&|\|\|)", rf"(?:&&|\|\||!)\s*{name}\b",
                rf"\b{name}\b[^\n]*[\n;]+[^\n]*\$\?")
        return any(re.search(way, self.texts) for way in ways)

    def reach_training(self):
        """Lets the files exist without which the script ends before it starts anything."""
        before, made = self.run, self.script.made
        for _ in range(ROUNDS):
            self.script.folder = next((above for above in folders_above(self.script.folder, self.script.visible) for name in self.tested(True)
                                       if name.startswith("./") and name[-1] != "/" and os.path.isfile(os.path.join(above, name))),
                                      self.script.folder)
            files = [os.path.join(self.script.folder, made_name(name) or name) for name in self.tested(everywhere=True)]
            if trainings(self.run["commands"]) or not files:
                break
            self.script.made = self.script.made + files
            self.run = self.script.start()()
        if not trainings(self.run["commands"]):
            self.run, self.script.made = before, made

    def plain(self, run):
        return [{**one, "words": [self.named(word, run) for word in one["words"]]} for one in trainings(run["commands"])]

    def literals(self):
        """Returns texts with which the script compares what programs make of unknown values."""
        found = re.findall(r"\bgrep\s+(?:-\S+\s+)*[\"']?([\w.-]+)", self.texts) + re.findall(r"\[[\"']?([A-Za-z][\w.-]*)[\"']?\]=", self.texts)
        return literals_in(found)[:MOST_LITERALS]

    def tested(self, everywhere=False):
        """Returns files and folders ("/" at the end) outside of the script's folders, and programs, for which the script looks in vain."""
        names = []
        for _, words in traced(self.run):
            words = [word for word in words if word not in ("!", "[", "[[", "test")]
            for flag, path in zip(words, words[1:]):
                path = os.path.normpath(path)
                is_outside = path.startswith("/") and not path.startswith((self.script.visible + "/", "/proc", "/dev"))
                if flag in ("-f", "-e", "-d", "-s", "-r", "-x") and (is_outside or everywhere):
                    names.append(("" if path.startswith("/") else "./") + path + ("/" if flag == "-d" else ""))
            if words[:1] in (["which"], ["hash"], ["type"]) or words[:2] == ["command", "-v"]:
                names += [words[-1]] if re.fullmatch(r"[\w.-]+", words[-1]) and not shutil.which(words[-1], path=shell_jail.PATH) else []
        stated = [one for one in dict.fromkeys(names) if any(answer == one + "!" or answer.startswith(one + "=") for answer in self.script.answers)]
        self.run["used"] += [one.replace("/", "_") for one in self.script.answers if one.rstrip("!").partition("=")[0] in stated]
        known = [*stated, *shell_jail.NAMES]
        return [one for one in dict.fromkeys(names) if one not in known and not {one, made_name(one), os.path.join(self.script.folder, one)} & {*self.script.made} and not os.path.exists(os.path.join(self.script.folder, one))]

    def asked_before_exit(self):
        """Returns the variables in the last condition before the script ended."""
        names = []
        for place, words in traced(self.run):
            file, _, line = place.rpartition(":")
            lines = self.run["texts"].get(file, "").split("\n")
            if words[:1] in (["["], ["[["], ["test"], ["case"]) and line.isdigit() and 0 < int(line) <= len(lines):
                found = re.findall(rf"\$\{{?#?({NAME}|\d+|[#@*])", lines[int(line) - 1])
                names = found or names
        errors = "\n".join([self.run["errors"], *self.run["files"].values()])
        return [*dict.fromkeys(names + re.findall(rf"({NAME}|\d+): (?:unbound variable|parameter)", errors))]


def bare_of(text):
    """Returns the text without marked values, which may be on several lines."""
    return re.sub("(?:\x01[^\x02]*\x02\n)*\x01[^\x02]*\x02", "", text)


def literals_in(words):
    return [one for one in dict.fromkeys(re.sub(r"[*\"'^$\\]", "", one).strip() for one in words) if re.fullmatch(r"[\w.][\w.,:/+-]*", one)]


def compared_of(words):
    """Returns the texts with which a test compares, and numbers at its limits."""
    found = [one for one in re.split(r"[\s()<>=!&|%*+,-]+", " ".join(words[1:])) if words[0] in ("((", "let")]
    found = found or [one for one in words[1:] if not re.match(r"-[a-z]+$|[=!<>]|\]|&&|\|\|", one)]
    found = [one for one in literals_in(found) if not MARK.search(one) and not one.startswith(str(NUMBER // 10000))]
    numbers = [int(one) for one in found if re.fullmatch(r"\d{1,6}", one)]
    return [*dict.fromkeys(found + [str(one + 1) for one in numbers])] if numbers else found


def combined(domains):
    """Returns changes that hold each pair of values of two unknowns."""
    values = [(one, value) for one, several in domains.items() for value in several]
    several = []
    pairs = {frozenset((a, b)) for a in values for b in values if a[0] is not b[0]}
    while pairs:
        row = dict(min(pairs, key=lambda pair: sorted(map(values.index, pair))))
        for one, value in values:
            if one not in row and any(frozenset(((one, value), other)) in pairs for other in row.items()):
                row[one] = value
        pairs -= {frozenset((a, b)) for a in row.items() for b in row.items()}
        several.append(row)
    return several


def key_of(words):
    """Returns the first words of a command that name it: those without marks."""
    kept = []
    for word in words[:8]:
        if MARK.search(word) or "\n" in word or len(" ".join([*kept, word])) > 250:
            break
        kept.append(word)
    return " ".join(kept)


def said_of(command):
    return " ".join(command["words"]) + " "


def is_training(words):
    return any(re.search(r"\.py$|^--?[A-Za-z][\w-]+(=|$)|^[\w.+@/-]+=", word) for word in words[1:]) and \
        os.path.basename(words[0]) not in ("git", "pip", "pip3", "curl", "wget", "apt", "apt-get", "module", "scontrol", "hf")


def trainings(commands):
    return [one for one in commands if is_training(one["words"])]
