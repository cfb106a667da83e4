"""Runs the program, and compares its JSON documents with results of the package. For tests that run with PYTHONPATH,
TPSIM_PROGRAM and TPSIM_SOURCE_DIR set.
"""

import dataclasses
import json
import os
import subprocess
from unittest import mock

import tpsim

PROGRAM = os.environ["TPSIM_PROGRAM"]
SOURCE = os.environ["TPSIM_SOURCE_DIR"]
SMALL = {"tp": 2, "pp": 2, "dp": 4, "micro_batch": 2, "global_batch": 64}
SMALL_WORDS = "--tp 2 --pp 2 --dp 4 --micro-batch 2 --global-batch 64".split()


FILES = os.path.join(SOURCE, "tests", "cli", "files")
MEASURED = os.path.join(FILES, "measured.csv")


def small_catalogue():
    """Replaces the catalogue by the small one of the golden tests."""
    return mock.patch.dict(os.environ, {"TPSIM_DATA": os.path.join(FILES, "data")})


def run(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def document(*words):
    code, out, err = run(*words, "--json")
    assert code == 0, err
    return json.loads(out)


def fields_against(test, value, data, path="report"):
    """Checks that the keys of a document and the properties
    of its class are the same, with equal values."""
    if dataclasses.is_dataclass(value):
        shown = {one.name for one in dataclasses.fields(value)} - {"document"}
        shown -= {"file"} if isinstance(value, tpsim.Plan) else set()
        optional = {name for name in shown if getattr(value, name) in (None, ())}
        test.assertLessEqual(set(data), shown | {"version"}, path)
        test.assertLessEqual(shown - optional, set(data), path)
        for name in shown & set(data):
            fields_against(test, getattr(value, name), data[name], f"{path}.{name}")
    elif isinstance(value, tuple):
        test.assertEqual(len(value), len(data), path)
        for i, item in enumerate(value):
            fields_against(test, item, data[i], f"{path}[{i}]")
    elif isinstance(value, dict):
        test.assertEqual(set(value), set(data), path)
        for key, item in value.items():
            fields_against(test, item, data[key], f"{path}[{key}]")
    else:
        test.assertEqual(value, data, path)
