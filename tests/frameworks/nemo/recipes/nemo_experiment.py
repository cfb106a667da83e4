#!/usr/bin/env python3
# A script with options of its own that gives a recipe of NeMo's to an experiment.
import argparse
from functools import partial

import nemo_run as run

from nemo.collections import llm
from nemo.collections.llm.recipes.precision.mixed_precision import bf16_with_fp8_mixed
from nemo.utils.exp_manager import TimingCallback


def get_parser():
    parser = argparse.ArgumentParser(description="pretraining on a cluster")
    parser.add_argument("--nodes", "-n", type=int, default=4, help="of eight GPUs")
    parser.add_argument("--fp8", action="store_true", help="8 bits")
    parser.add_argument("--tag", type=str, required=False, default="")
    return parser


def slurm_executor(account: str, nodes: int) -> run.SlurmExecutor:
    if not (account and nodes):
        raise RuntimeError("Please set account and nodes")
    return run.SlurmExecutor(account=account, nodes=nodes, ntasks_per_node=8)


def main():
    args = get_parser().parse_args()
    name = f"{args.tag}-llama3" if args.tag else "llama3"
    pretrain = partial(llm.llama3_70b.pretrain_recipe, num_nodes=args.nodes)(name=name, dir="/checkpoints")
    pretrain.trainer.devices = 8
    for key in ["tensor", "pipeline"]:
        print(f"{key} is chosen below")
    pretrain.trainer.strategy.tensor_model_parallel_size = 4
    pretrain.trainer.strategy.pipeline_model_parallel_size = 4
    pretrain.trainer.strategy.context_parallel_size = 1
    pretrain.data.micro_batch_size, pretrain.data.global_batch_size = 1, sum([size * 16 for size in (1, 3)])
    pretrain.trainer.callbacks.append(run.Config(TimingCallback))
    if args.fp8:
        pretrain.trainer.plugins = bf16_with_fp8_mixed()

    executor = slurm_executor(account="", nodes=args.nodes)
    with run.Experiment(f"{name}-pretraining") as exp:
        exp.add(pretrain, executor=executor, name=name, tail_logs=True)
        exp.run(sequential=True, detach=True)


if __name__ == "__main__":
    main()
