"""The recorded sample on disk: numbers of every scenario, and some programs in full. Names are
stored as ids."""
from sample.numbers import prediction_numbers, search_numbers
from sample.program import in_parallel
from sample.scenarios import PREDICTION

KEPT_IN_FULL = 40  # one in this many predictions has its program recorded line by line


def keeps_program(one):
    return one.startswith(PREDICTION) and int(one[1:]) % KEPT_IN_FULL == 1


class Recording:
    """`numbers`: {scenario: {id: text}}; `programs`: {scenario: lines}; `messages`: {scenario:
    reason why it was refused}."""

    def __init__(self):
        self.numbers, self.programs, self.messages = {}, {}, {}


def measured(program, scenarios, names, hear=lambda done: None):
    """Runs the scenarios and returns the program's current results."""
    recording = Recording()

    def answer(scenario):
        return program.predict(scenario) if scenario.id.startswith(PREDICTION) else program.search(scenario)

    for done, (scenario, got) in enumerate(zip(scenarios, in_parallel(answer, scenarios)), 1):
        if scenario.id.startswith(PREDICTION):
            recording.numbers[scenario.id], lines = prediction_numbers(got, names)
            if keeps_program(scenario.id):
                recording.programs[scenario.id] = lines
        else:
            recording.numbers[scenario.id] = search_numbers(got, names)
        if got.code != 0:
            recording.messages[scenario.id] = got.message
        hear(done)
    return recording


def read_recording(folder):
    recording = Recording()
    for line in text_of(folder / "numbers.txt").splitlines():
        one, *numbers = line.split(" ")
        recording.numbers[one] = dict(part.split("=", 1) for part in numbers)
    lines = []
    for line in text_of(folder / "programs.txt").splitlines():
        if keeps_program_of(line):
            lines = recording.programs.setdefault(line, [])
        else:
            lines.append(line.strip())
    return recording


def keeps_program_of(line):
    return line.startswith(PREDICTION) and line[1:].isdigit()


def text_of(path):
    return path.read_text() if path.exists() else ""


def write_recording(folder, recording):
    with open(folder / "numbers.txt", "w", encoding="utf-8") as out:
        for one, numbers in recording.numbers.items():
            out.write(" ".join([one, *(f"{key}={value}" for key, value in numbers.items())]) + "\n")
    with open(folder / "programs.txt", "w", encoding="utf-8") as out:
        for one, lines in recording.programs.items():
            out.write("\n ".join([one, *lines]) + "\n")
