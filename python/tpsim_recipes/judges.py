"""The judges by the name of the framework."""
from .check import megatron_bridge, megatron_lm
from .judge_accelerate import accelerate
from .judge_deepspeed import deepspeed, megatron_deepspeed
from .judge_torchtitan import torchtitan

JUDGES = {"accelerate": accelerate, "deepspeed": deepspeed, "megatron-bridge": megatron_bridge,
          "megatron-deepspeed": megatron_deepspeed, "megatron-lm": megatron_lm, "torchtitan": torchtitan}
