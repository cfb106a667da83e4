# A recipe whose parts are instances, with their arguments by place and in lists.
import nemo_run as run
import torch
from megatron.core.optimizer import OptimizerConfig

from nemo import lightning as nl
from nemo.collections import llm


def configure_recipe(nodes: int = 4, gpus_per_node: int = 8):
    strategy = nl.MegatronStrategy(
        tensor_model_parallel_size=4,
        pipeline_model_parallel_size=2,
        virtual_pipeline_model_parallel_size=4,
        pipeline_dtype=torch.bfloat16,
        sequence_parallel=True,
        ddp="megatron",
        use_tp_pp_dp_mapping=True,
        use_te_rng_tracker=True,
    )
    model = llm.LlamaModel(llm.Llama2Config7B(seq_length=4096, enable_cuda_graph=True, apply_rope_fusion=True))
    trainer = nl.Trainer(
        devices=gpus_per_node,
        num_nodes=nodes,
        strategy=strategy,
        plugins=[
            nl.MegatronMixedPrecision(
                precision="bf16-mixed", fp8="hybrid", fp8_recipe="tensorwise", grad_reduce_in_fp32=False
            )
        ],
        callbacks=[nl.MegatronCommOverlapCallback(tp_comm_overlap=True, overlap_p2p_comm=False)],
    )
    return run.Partial(
        llm.train,
        model=model,
        trainer=trainer,
        optim=nl.MegatronOptimizerModule(OptimizerConfig(optimizer="adam", use_distributed_optimizer=True, bf16=True)),
        data=llm.PreTrainingDataModule(paths=["tokens"], seq_length=4096, global_batch_size=128, micro_batch_size=2),
    )
