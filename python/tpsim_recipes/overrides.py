"""Sets fields of a configuration by their dotted paths, as overrides on a command line do."""
import contextlib


def overridden(config, words):
    """Sets options such as "--training.steps 10", "--a.b=c" and the switches "--a.b" and "--a.no-b"."""
    while words:
        name, equals, text = words.pop(0).lstrip("-").partition("=")
        if not equals and words and not words[0].startswith("--"):
            text, equals = words.pop(0), "="
        path = name.replace("-", "_")
        owner, _, last = path.rpartition(".")
        if equals:
            put(config, path, value_of(text))
        elif last.startswith("no_"):
            put(config, f"{owner}.{last[len('no_'):]}", False)
        else:
            put(config, path, True)
    return config


def put(config, path, value):
    """Sets the field at a dotted path, through dataclasses, dictionaries and lists."""
    *parents, last = path.split(".")
    owner = config
    for name in parents:
        owner = child_of(owner, name, path)
    if isinstance(owner, dict):
        owner[last] = value
    elif isinstance(owner, list):
        owner[int(last)] = value
    else:
        child_of(owner, last, path)
        setattr(owner, last, value)


def child_of(owner, name, path):
    if isinstance(owner, dict) and name in owner:
        return owner[name]
    if isinstance(owner, list) and name.isdigit() and int(name) < len(owner):
        return owner[int(name)]
    if isinstance(owner, (dict, list)) or not hasattr(owner, name):
        raise AttributeError(f"{path} is not a setting: {type(owner).__name__} has no '{name}'")
    return getattr(owner, name)


def value_of(text):
    """Converts the text of a value on the command line to a Python value."""
    known = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
