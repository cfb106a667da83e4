# A script that puts a trainer, a model and data together itself.
import torch
from megatron.core.optimizer import OptimizerConfig

from nemo import lightning as nl
from nemo.collections import llm

if __name__ == "__main__":
    seq_length = 4096
    nodes, gpus = 2, 8
    data = llm.MockDataModule(seq_length=seq_length, global_batch_size=64, micro_batch_size=2)
    model = llm.LlamaModel(llm.Llama2Config7B())
    strategy = nl.MegatronStrategy(
        tensor_model_parallel_size=2,
        pipeline_model_parallel_size=1,
        pipeline_dtype=torch.bfloat16,
        sequence_parallel=True,
    )
    optim = nl.MegatronOptimizerModule(
        config=OptimizerConfig(optimizer="adam", lr=6e-4, use_distributed_optimizer=True),
    )
    trainer = nl.Trainer(
        devices=gpus,
        num_nodes=nodes,
        max_steps=50,
        accelerator="gpu",
        strategy=strategy,
        plugins=nl.MegatronMixedPrecision(precision="bf16-mixed"),
    )
    logger = nl.NeMoLogger(log_dir="logs")
    llm.train(model=model, data=data, trainer=trainer, log=logger, tokenizer="data", optim=optim)
