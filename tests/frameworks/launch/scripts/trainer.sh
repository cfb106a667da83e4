#!/bin/bash
# started from the top of the repository
ACCELERATE_LOG_LEVEL=info accelerate launch --config_file configs/sharded.yaml \
    --num_processes=4 scripts/sft.py --config configs/recipe.yaml \
    --gradient_accumulation_steps 8
