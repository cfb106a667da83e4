"""Reads YAML files of nested block mappings, lists of values, and values on one line, in place of PyYAML. Other forms
are errors. Booleans are those of YAML 1.1.
"""
import contextlib
import re

WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None, "": None}
# Lists and mappings on one line, references, tags, blocks, open quotes, and keys of mappings in lists.
OTHER_FORMS = re.compile(r"[\[{&*!|>'\"]|- |.*:(\s|$)")
FORMS = (str.lower, str.upper, str.capitalize)  # spellings of a word that YAML 1.1 reads as its value


def load(file):
    """Returns the value of an open file or a text."""
    text = file if isinstance(file, str) else file.read()
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    value, rest = block(lines, 0)
    if rest:
        raise unreadable(rest[0])
    return value


def unreadable(text):
    return ValueError(f"the YAML file has a line that cannot be read: {text.strip()}")


def indent(line):
    return len(line) - len(line.lstrip())


def block(lines, depth):
    """Returns the mapping or list at this depth, and the lines behind it."""
    value, is_list = None, lines[:1] and lines[0].strip().startswith("- ")
    while lines and indent(lines[0]) == depth and lines[0].strip().startswith("- ") == is_list:
        line, lines = lines[0].strip(), lines[1:]
        if line.startswith("- "):
            value = [] if value is None else value
            value.append(scalar(line[2:]))
            continue
        found = re.fullmatch(r"([^:\s]+):(?:\s+(.*))?", line)
        if not found:
            raise unreadable(line)
        value = {} if value is None else value
        inner = lines and (indent(lines[0]) > depth or lines[0].strip().startswith("- ") and indent(lines[0]) == depth)
        if inner and not found[2]:
            value[found[1]], lines = block(lines, indent(lines[0]))
        else:
            value[found[1]] = scalar(found[2] or "")
    return value, lines


def scalar(text):
    quoted = re.fullmatch(r"(?:'([^']*)'|\"([^\"\\]*)\")\s*(?:\s#.*)?", text.strip())
    if quoted:
        return quoted[1] if quoted[2] is None else quoted[2]
    text = re.sub(r"(^|\s+)#.*", "", text).strip()
    if OTHER_FORMS.match(text):
        raise unreadable(text)
    for word, value in WORDS.items():
        if text in {form(word) for form in FORMS}:
            return value
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
