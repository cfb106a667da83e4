"""Stable ids for the names in the sample. If a term, setting, catalogue entry or op is renamed,
only tests/sample/ids.json changes."""
import json

PREFIX = {"model": "m", "cluster": "c", "stack": "s", "option": "o", "key": "k", "term": "t", "memory": "y",
          "reason": "r", "part": "a", "phase": "h", "op": "x", "dtype": "d", "collective": "l", "group": "g",
          "category": "e", "label": "w", "pass": "z"}
CATALOGUE = {"--model": "model", "--cluster": "cluster", "--stack": "stack"}


class Names:
    """The map between names and ids. An unknown name gets a new id in a recording, and "?name"
    in a check."""

    def __init__(self, path, grows):
        self.path, self.grows = path, grows
        self.names = json.loads(path.read_text()) if path.exists() else {}
        self.ids = {kind: {name: one for one, name in by_id.items()} for kind, by_id in self.names.items()}
        self.unknown = set()

    def id_of(self, kind, name, prefix=None):
        known = self.ids.setdefault(kind, {})
        if name in known:
            return known[name]
        if not self.grows:
            self.unknown.add((kind, name))
            return "?" + name.replace(" ", "_")
        by_id = self.names.setdefault(kind, {})
        known[name] = f"{prefix or PREFIX[kind]}{len(by_id) + 1}"
        by_id[known[name]] = name
        return known[name]

    def name_of(self, kind, one):
        return self.names.get(kind, {}).get(one, one)

    def value_id(self, option, text):
        """Returns the text of an option's value with ids for words: numbers are unchanged, and
        "blocks:3" is the id of "blocks" with the number."""
        if option in CATALOGUE:
            return self.id_of(CATALOGUE[option], text)
        option_id = self.id_of("option", option)
        words = []
        for word in text.split(","):
            word, colon, count = word.partition(":")
            if not is_number(word):
                word = self.id_of("values of " + option_id, word, option_id + "v")
            words.append(word + colon + count)
        return ",".join(words)

    def value_text(self, option, value):
        if option in CATALOGUE:
            return self.name_of(CATALOGUE[option], value)
        option_id = self.ids["option"].get(option, option)
        words = []
        for word in value.split(","):
            word, colon, count = word.partition(":")
            words.append(self.name_of("values of " + option_id, word) + colon + count)
        return ",".join(words)

    def save(self):
        kinds = {kind: self.names[kind] for kind in sorted(self.names)}
        self.path.write_text(json.dumps(kinds, indent=1) + "\n")


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
