"""The scenarios of the sample as command-line options, and the file in which they are stored by
ids."""

PREDICTION, SEARCH = "p", "q"


class Scenario:
    """Command-line options in order. A switch has the value None."""

    def __init__(self, one, options):
        self.id, self.options = one, options

    def words(self):
        words = []
        for option, value in self.options.items():
            words += [option] if value is None else [option, str(value)]
        return words

    def line(self, names):
        parts = [self.id]
        for option, value in self.options.items():
            option_id = names.id_of("option", option)
            parts.append(option_id if value is None else f"{option_id}={names.value_id(option, str(value))}")
        return " ".join(parts)


def scenario_of(line, names):
    one, *parts = line.split(" ")
    options = {}
    for part in parts:
        option_id, equals, value = part.partition("=")
        option = names.name_of("option", option_id)
        options[option] = names.value_text(option, value) if equals else None
    return Scenario(one, options)


def read_scenarios(path, names):
    return [scenario_of(line, names) for line in path.read_text().splitlines()]


def first_of(scenarios, count):
    """Returns the first `count` predictions and 1/20 as many searches; all scenarios if count is
    None."""
    predictions = [s for s in scenarios if s.id.startswith(PREDICTION)]
    searches = [s for s in scenarios if s.id.startswith(SEARCH)]
    if count is None:
        return predictions + searches
    return predictions[:count] + searches[: -(-count // 20)]
