"""Frameworks' own parsers and checks, applied to files that `tpsim export` wrote. `export --check` runs them by tpsim_recipes."""
from .accelerate import accelerate
from .bridge import megatron_bridge
from .deepspeed import deepspeed, megatron_deepspeed
from .torchtitan import torchtitan

JUDGES = {"accelerate": accelerate, "deepspeed": deepspeed, "megatron-bridge": megatron_bridge,
          "megatron-deepspeed": megatron_deepspeed, "torchtitan": torchtitan}
