#!/usr/bin/env python3
"""Gives each drawn launch file to `tpsim import` as it is, then with what the import asks for.

    measure.py --program build/release/tpsim --clones /path/of/clones [--files files.csv] [ID ...]

answers.csv holds, for each file that asks, the options that its first answer names. A file is
imported within its repository, so that files which it names are found. Clones are bare
repositories at CLONES/OWNER+NAME/repo.
"""
import argparse
import csv
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def checked_out(clones, folder, repository, commit):
    """The repository's files up to 1 MB: a snapshot may lack large ones."""
    place = folder / repository.replace("/", "+")
    if place.exists():
        return place
    git = ["git", "-C", str(clones / repository.replace("/", "+") / "repo")]
    listed = subprocess.run([*git, "ls-tree", "-r", "-l", "-z", commit], capture_output=True,
                            check=True).stdout.decode(errors="replace")
    wanted = []
    for entry in filter(None, listed.split("\0")):
        about, path = entry.split("\t", 1)
        mode, kind, object_id, size = about.split()
        if kind == "blob" and mode != "120000" and size.isdigit() and int(size) < 1 << 20:
            wanted.append((object_id, path))
    batch = subprocess.run([*git, "cat-file", "--batch"], capture_output=True, check=True,
                           input="".join(f"{one}\n" for one, _ in wanted).encode()).stdout
    at = 0
    for _, path in wanted:
        end = batch.index(b"\n", at)
        head = batch[at:end].split()
        at = end + 1
        if head[-1] == b"missing":
            continue
        size = int(head[2])
        file = place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(batch[at:at + size])
        at += size + 1
    return place


def imported(program, path, options):
    run = subprocess.run([str(program), "import", str(path), *options], capture_output=True,
                         text=True, errors="replace", timeout=400, check=False)
    is_plan = run.stdout.startswith("PLAN")  # also if the default cluster cannot run it
    return 0 if is_plan else run.returncode, run.stdout, run.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--clones", type=pathlib.Path, required=True)
    parser.add_argument("--files", type=pathlib.Path, default=HERE / "files.csv")
    parser.add_argument("--answers", type=pathlib.Path, default=HERE / "answers.csv")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/launch-files"))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("numbers", nargs="*", type=int)
    arguments = parser.parse_args()
    answers = {}
    if arguments.answers.exists():
        with open(arguments.answers, encoding="utf-8") as file:
            answers = {(row["repository"], row["path"]): shlex.split(row["options"])
                       for row in csv.DictReader(file)}
    with open(arguments.files, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    as_it_is = without_set = answered = 0
    for number, row in enumerate(rows, 1):
        if arguments.numbers and number not in arguments.numbers:
            continue
        place = checked_out(arguments.clones, arguments.work, row["repository"], row["commit"])
        path = place / row["path"]
        code, out, errors = imported(arguments.program, path, [])
        options = answers.get((row["repository"], row["path"]), [])
        result = "plan" if code == 0 else "refused"
        if code == 0:
            as_it_is += 1
            without_set += 1
            answered += 1
        elif options:
            code, out, errors = imported(arguments.program, path, options)
            if code == 0:
                answered += 1
                without_set += "--set" not in options
                result = "plan with " + shlex.join(options)
        print(f"{number:2} {row['framework']}: {row['path']}: {result}")
        if code != 0 or arguments.verbose:
            print("   " + (errors if code != 0 else out + errors).replace("\n", "\n   "))
        sys.stdout.flush()
    print(f"{len(arguments.numbers) or len(rows)} files: {as_it_is} give a plan as they are, "
          f"{without_set} without --set, {answered} with what the import asks for")


if __name__ == "__main__":
    main()
