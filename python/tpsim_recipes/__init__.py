"""Runs the Python code of a training framework without its dependencies, and prints the configuration that it creates.
Reads files of profilers too.

    python3 -m tpsim_recipes recipe FILE.py [--checkout DIR]... [--function NAME] [--set NAME=VALUE]...
    python3 -m tpsim_recipes check megatron-lm --checkout DIR ARGUMENTS.json
    python3 -m tpsim_recipes read memory-snapshot|nsys-report FILE

`tpsim import --run`, `export --check`, `explain --snapshot` and `check-log` start it. Requires Python 3.8 and no other package.
"""
