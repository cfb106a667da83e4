"""Reads YAML files of nested block mappings, lists and plain values, in place of PyYAML. Booleans are those of YAML 1.1."""
import contextlib
import re

WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None, "": None}
FORMS = (str.lower, str.upper, str.capitalize)  # spellings of a word that YAML 1.1 reads as its value


def load(file):
    """Returns the value of an open file or a text."""
    text = file if isinstance(file, str) else file.read()
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    value, rest = block(lines, 0)
    if rest:
        raise ValueError(f"the YAML file has a line that cannot be read: {rest[0].strip()}")
    return value


def indent(line):
    return len(line) - len(line.lstrip())


def block(lines, depth):
    """Returns the mapping or list at this depth, and the lines behind it."""
    value = None
    while lines and indent(lines[0]) == depth:
        line, lines = lines[0].strip(), lines[1:]
        if line.startswith("- "):
            value = [] if value is None else value
            value.append(scalar(line[2:]))
            continue
        found = re.fullmatch(r"([^:\s]+):(?:\s+(.*))?", line)
        if not found:
            raise ValueError(f"the YAML file has a line that cannot be read: {line}")
        value = {} if value is None else value
        inner = lines and (indent(lines[0]) > depth or lines[0].strip().startswith("- ") and indent(lines[0]) == depth)
        if inner and not found[2]:
            value[found[1]], lines = block(lines, indent(lines[0]))
        else:
            value[found[1]] = scalar(found[2] or "")
    return value, lines


def scalar(text):
    text = re.sub(r"\s+#.*", "", text).strip()
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    for word, value in WORDS.items():
        if text in {form(word) for form in FORMS}:
            return value
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
