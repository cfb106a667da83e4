"""Draws layout, settings and parts of a plan together, for measure.py --draw."""
import collections


def drawn_options(pairs, gpus, generator):
    """Options of a drawn layout, then of up to 16 drawn settings and parts, each a list of words."""
    tp, pp, cp = (generator.choice(degrees) for degrees in ((1, 1, 2, 4, 8), (1, 1, 2, 4, 8), (1, 1, 1, 2)))
    layout = ["--tp", tp, "--pp", pp, "--cp", cp, "--dp", max(1, gpus // (tp * pp * cp))]
    values = collections.defaultdict(list)
    for option, value in pairs + [("--etp", "1"), ("--etp", "2"), ("--schedule", "gpipe"), ("--recompute", "blocks:2")]:
        values[option].append(value)
    for option in layout[::2]:
        values.pop(option, None)
    names = generator.sample(sorted(values), generator.randint(1, 16))
    return [layout] + [[name, generator.choice(values[name])] for name in names]


def accepted_options(tpsim, arguments, plan, options, folder):
    """Changes the plan by the options that `tpsim simulate` and the export accept, and returns these options."""
    if not options:
        return []
    path, files = folder / "changed.json", folder / "tried"
    path.unlink(missing_ok=True)
    tpsim.run("simulate", plan, *sum(options, []), "--save", path, "--quiet", "--allow-oom")
    if path.exists() and tpsim.run("export", path, "--to", arguments.to, "-o", files, "--quiet", "--allow-oom").returncode == 0:
        path.replace(plan)
        return options
    if len(options) == 1:
        return []
    half = len(options) // 2
    return accepted_options(tpsim, arguments, plan, options[:half], folder) + \
        accepted_options(tpsim, arguments, plan, options[half:], folder)
