"""Summarizes the differences between two recordings: how many, in which direction, and in which
terms and model families."""
import difflib
import statistics

from sample.names import is_number
from sample.scenarios import PREDICTION

# Numbers that are compared by difference. All other numbers are compared by relative difference.
SHARES = ("mfu", "bubble_fraction", "p_oom", "sources.exact_entries", "sources.interpolated_entries", "sources.model")
MOST_LINES = 12


def percent(change):
    return f"{100 * change:+.2g} %" if abs(change) < 1e-3 else f"{100 * change:+.1f} %"


def count_text(count):
    return f"{count:,}"


def noun(count, word):
    plural = word + ("es" if word.endswith("ch") else "s")
    return f"{count_text(count)} {word if count == 1 else plural}"


class Change:
    """A changed number of a scenario. `share`: its change relative to its total, such as the
    step time."""

    def __init__(self, one, key, old, new, share):
        self.scenario, self.key, self.old, self.new, self.share = one, key, old, new, share


class Comparison:
    """The differences between two recordings. Tolerance 0 requires equal bits."""

    def __init__(self, names, old, new, tolerance):
        self.names, self.old, self.new, self.tolerance = names, old, new, tolerance
        self.keys = {name: names.id_of("key", name) for name in ("step_s", "memory.peak", "exit_code", "program",
                                                                 "plan")}
        self.shares = {names.id_of("key", name) for name in SHARES}
        self.changes = {}  # by scenario
        self.fresh = [one for one in new.numbers if one not in old.numbers]  # never recorded
        for one in new.numbers:
            found = self.changes_of(one) if one in old.numbers else []
            if found:
                self.changes[one] = found

    def changes_of(self, one):
        old, new = self.old.numbers[one], self.new.numbers[one]
        changes = []
        for key in list(new) + [key for key in old if key not in new]:
            a, b = old.get(key, "0"), new.get(key, "0")
            if a == b:
                continue
            share = self.share(key, a, b, old)
            if share is None or not abs(share) <= self.tolerance or self.tolerance == 0:
                changes.append(Change(one, key, a, b, share))
        return changes

    def share(self, key, a, b, old):
        """Returns the difference of b from a, relative except for SHARES. None for texts, and if a
        number is missing."""
        name = key.rpartition(".")[2]
        if name in (self.keys["program"], self.keys["plan"], self.keys["exit_code"]):
            return None
        if not is_number(a) or not is_number(b):
            return None
        a, b = float(a), float(b)
        if name in self.shares:
            return b - a
        whole = a
        if key.startswith("t"):
            whole = float(old.get(self.keys["step_s"], 0))
        elif key.startswith("y"):
            whole = float(old.get(self.keys["memory.peak"], 0))
        return (b - a) / whole if whole else None

    def name_of(self, key):
        place, dot, own = key.rpartition(".")
        for kind, words in (("term", "term "), ("memory", "memory "), ("key", ""), ("reason", "pruned: ")):
            if own in self.names.names.get(kind, {}):
                return (f"plan {place}: " if dot else "") + words + self.names.name_of(kind, own)
        return key

    def changed(self, key):
        """Returns the changes of one number in all scenarios."""
        return [change for changes in self.changes.values() for change in changes if change.key == key]


def spread_text(changes):
    """Returns a text such as: median -0.3 %, from -1.2 % (p0034) to +2.1 % (p0817)."""
    known = sorted((c.share, c.scenario) for c in changes if c.share is not None)
    if not known:
        return ""
    text = f"median {percent(statistics.median(share for share, _ in known))}"
    if len(known) > 1:
        text += f", from {percent(known[0][0])} ({known[0][1]}) to {percent(known[-1][0])} ({known[-1][1]})"
    return text


class Report:
    """The report of a comparison. `families`: family of each model. `scenarios`: scenarios that
    ran."""

    def __init__(self, comparison, scenarios, families):
        self.comparison, self.families = comparison, families
        self.scenarios = {scenario.id: scenario for scenario in scenarios}
        self.lines = []

    def text(self):
        for kind, word in ((PREDICTION, "prediction"), ("q", "search")):
            self.add_kind(kind, word)
        self.add_best_plans()
        self.add_programs()
        self.add_refused()
        self.add_unknown()
        return "\n".join(self.lines)

    def add_kind(self, kind, word):
        run = [one for one in self.scenarios if one.startswith(kind)]
        if not run:
            return
        changed = {one: changes for one, changes in self.comparison.changes.items() if one.startswith(kind)}
        fresh = [one for one in self.comparison.fresh if one.startswith(kind)]
        if fresh:
            self.lines.append(f"{count_text(len(fresh))} of {noun(len(run), word)} not recorded before")
        step = self.comparison.keys["step_s"]
        steps = [change for changes in changed.values() for change in changes if change.key in (step, "1." + step)]
        self.lines.append(f"{count_text(len(changed))} of {noun(len(run), word)} changed" +
                          (f"; step: {spread_text(steps)}" if steps else ""))
        if not changed:
            return
        self.add_numbers(changed)
        self.add_families(run, changed)
        self.add_shared(run, changed)
        self.add_largest(changed)

    def add_numbers(self, changed):
        """Adds the changes by term, in % of the step for times and in % of the peak for memory."""
        by_key = {}
        for changes in changed.values():
            for change in changes:
                by_key.setdefault(change.key, []).append(change)
        rows = [(self.comparison.name_of(key), len(changes), spread_text(changes)) for key, changes in by_key.items()]
        rows.sort(key=lambda row: (-row[1], row[0]))
        self.add_table("  number", rows)

    def add_families(self, run, changed):
        totals, found = {}, {}
        for one in run:
            family = self.families.get(self.scenarios[one].options["--model"], "?")
            totals[family] = totals.get(family, 0) + 1
            if one in changed:
                found.setdefault(family, []).append(one)
        step = self.comparison.keys["step_s"]
        rows = []
        for family, ones in found.items():
            steps = [change for one in ones for change in changed[one] if change.key.rpartition(".")[2] == step]
            rows.append((family, f"{len(ones)} of {totals[family]}", spread_text(steps) and
                         "step_s " + spread_text(steps)))
        self.add_table("  family", sorted(rows, key=lambda row: -int(row[1].split()[0])))

    def add_table(self, title, rows):
        shown = rows[:MOST_LINES]
        width = max([len(title)] + [len(row[0]) + 4 for row in shown])
        self.lines.append(f"{title:<{width}}  {'changed':>12}")
        for name, count, spread in shown:
            self.lines.append(f"    {name:<{width - 4}}  {count:>12}  {spread}".rstrip())
        if len(rows) > len(shown):
            self.lines.append(f"    and {noun(len(rows) - len(shown), 'other')}")

    def add_shared(self, run, changed):
        """Adds the options that all changed scenarios have, and at most half of the unchanged
        ones."""
        pairs = [set(self.scenarios[one].options.items()) | {(o, "any value") for o in self.scenarios[one].options}
                 for one in changed]
        shared = set.intersection(*pairs)
        others = [one for one in run if one not in changed]
        for option, value in sorted(shared, key=str):
            have = [one for one in others if option in self.scenarios[one].options and
                    value in ("any value", self.scenarios[one].options[option])]
            if others and 2 * len(have) < len(others):
                text = option if value in ("any value", None) else f"{option} {value}"
                self.lines.append(f"  all of these have {text}, as do {len(have)} of the {len(others)} others")

    def add_largest(self, changed):
        """Adds the commands of the scenarios whose step changed most."""
        def size(one):
            step = self.comparison.keys["step_s"]
            return max((abs(c.share) for c in changed[one] if c.share and c.key.rpartition(".")[2] == step), default=0)

        self.lines.append("  look at")
        for one in sorted(changed, key=lambda one: (-size(one), one))[:3]:
            command = "plan" if one.startswith("q") else "explain"
            self.lines.append(f"    {one}  tpsim {command} {' '.join(self.scenarios[one].words())}")

    def add_best_plans(self):
        """Adds the searches with a different best plan, and the settings that differ."""
        names = self.comparison.names
        for change in self.comparison.changed("1." + self.comparison.keys["plan"])[:MOST_LINES]:
            old, new = (dict(part.split(":", 1) for part in text.split("+") if ":" in part)
                        for text in (change.old, change.new))
            settings = []
            for option_id in new:
                option = names.name_of("option", option_id)
                before, now = (names.value_text(option, one.get(option_id, "-")) for one in (old, new))
                if before != now:
                    settings.append(f"{option} {now} (was {before})")
            self.lines.append(f"{change.scenario}: best plan with {', '.join(settings)}")

    def add_programs(self):
        """Adds the first lines that differ, for programs that are recorded in full."""
        for one, lines in self.comparison.new.programs.items():
            old = self.comparison.old.programs.get(one, [])
            if one not in self.comparison.changes or old == lines:
                continue
            diff = [line for line in difflib.unified_diff(old, lines, lineterm="", n=0)
                    if not line.startswith(("---", "+++", "@@"))]
            self.lines.append(f"program of {one}: {noun(len(diff), 'line')} of {len(lines)} differ")
            self.lines += ["    " + self.readable(line) for line in diff[:MOST_LINES]]

    def readable(self, line):
        """Returns a line of a program with names instead of ids."""
        words = []
        for word in line[1:].split(" "):
            for kind in ("part", "phase", "op", "dtype", "collective", "group", "category", "label", "pass"):
                if word in self.comparison.names.names.get(kind, {}):
                    word = self.comparison.names.name_of(kind, word)
                    break
            words.append(word)
        return line[0] + " " + " ".join(words)

    def add_refused(self):
        """Adds the scenarios whose exit code differs."""
        code = self.comparison.keys["exit_code"]
        for change in self.comparison.changed(code)[:MOST_LINES]:
            message = self.comparison.new.messages.get(change.scenario, "")
            self.lines.append(f"{change.scenario}: exit code {change.new}, was {change.old}: {message}")

    def add_unknown(self):
        for kind, name in sorted(self.comparison.names.unknown):
            self.lines.append(f"ids.json has no {kind} '{name}'. Put a renamed one under its id there.")
