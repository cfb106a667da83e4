"""Runs the Python code of a training framework without its dependencies, and prints the configuration that it creates.

    python3 -m tpsim_recipes recipe FILE.py [--checkout DIR]... [--function NAME] [--set NAME=VALUE]...
    python3 -m tpsim_recipes check megatron-lm --checkout DIR ARGUMENTS.json

`tpsim import --run` and `tpsim export --check` start it. Requires Python 3.8 and no other package.
"""
