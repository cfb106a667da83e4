#!/usr/bin/env python3
"""Draws public launch files without adapters, by seed, from clones of their repositories.

    draw.py /path/of/clones > files.csv
    draw.py /path/of/clones scripts > scripts.csv
    draw.py /path/of/clones configs > configs.csv
    draw.py /path/of/clones more > more_scripts.csv
    draw.py /path/of/clones third > third_scripts.csv

Clones are bare repositories at CLONES/OWNER+NAME/repo. A launch file starts the training of all
weights of a language model that reads text. The filters below are the whole definition.
"""
import csv
import pathlib
import random
import re
import subprocess
import sys

SEED = 42

# framework, number of files, and for each repository: which paths, and what the text must hold.
FRAMEWORKS = [
    ("ms-swift", 6, {"modelscope/ms-swift": (r"^examples/(megatron|train)/.*\.sh$",
                                             r"\b(swift|megatron) (sft|pt|rlhf)\b")}),
    ("verl", 5, {"volcengine/verl": (r"^examples/.*\.sh$", r"verl\.trainer\.\w+"),
                 "agentica-project/rllm": (r"^scripts/.*\.sh$", r"verl\.trainer\.\w+")}),
    ("OpenRLHF", 3, {"OpenRLHF/OpenRLHF": (r"^examples/scripts/train_.*\.sh$",
                                           r"openrlhf\.cli\.train")}),
    ("slime", 4, {"THUDM/slime": (r"^(scripts|examples)/.*run[-_].*\.sh$",
                                  r"\btrain(_async)?\.py")}),
    ("Primus", 4, {"AMD-AGI/Primus": (r"^examples/(megatron|torchtitan)/configs/.*\.yaml$",
                                      r"modules:")}),
    ("Pai-Megatron-Patch", 3, {"alibaba/Pai-Megatron-Patch": (
        r"^examples/.*/run_(mcore|pretrain|finetune)_.*\.sh$", r"--tensor-model-parallel-size")}),
    ("GPT-NeoX", 4, {"EleutherAI/gpt-neox": (r"^configs/.*\.yml$", r"num[-_]layers"),
                     "EleutherAI/pythia": (r"^models/.*\.yml$", r"num[-_]layers")}),
    ("LLaMA-Factory", 3, {"hiyouga/LLaMA-Factory": (r"^examples/.*\.(yaml|sh)$",
                                                    r"(?m)^\s*(finetuning_type: full|.*llamafactory-cli train)"),
                          "open-thoughts/open-thoughts": (r"^train/.*\.yaml$",
                                                          r"finetuning_type: full")}),
    ("axolotl", 3, {"axolotl-ai-cloud/axolotl": (r"^examples/.*\.ya?ml$", r"(?m)^base_model:")}),
    ("torchtune", 4, {"pytorch/torchtune": (r"^recipes/configs/.*full.*\.yaml$",
                                            r"(?m)^tokenizer:")}),
    ("TRL", 4, {"huggingface/alignment-handbook": (r"^recipes/.*\.yaml$",
                                                   r"per_device_train_batch_size"),
                "huggingface/open-r1": (r"^recipes/.*\.yaml$", r"per_device_train_batch_size"),
                "huggingface/trl": (r"^examples/.*\.(sh|ya?ml)$",
                                    r"per_device_train_batch_size")}),
    ("accelerate and torchrun", 2, {
        "simplescaling/s1": (r"^train/.*\.sh$", r"torchrun|accelerate launch"),
        "lm-sys/FastChat": (r"^scripts/.*\.sh$", r"torchrun|accelerate launch"),
        "allenai/open-instruct": (r"^scripts/.*\.sh$", r"torchrun|accelerate launch")}),
    ("MLPerf", 3, {
        "mlcommons/training_results_v5.0": (
            r"^NVIDIA/benchmarks/llama.*/config_.*\dx\d.*\.sh$", r"TENSOR_MODEL_PARALLEL|TP="),
        "mlcommons/training_results_v4.1": (
            r"^NVIDIA/benchmarks/(gpt3|llama)[^/]*/.*config_.*\dx\d.*\.sh$",
            r"TENSOR_MODEL_PARALLEL|TP=")}),
    ("Megatron-LM", 4, {
        "NVIDIA/Megatron-LM": (r"^examples/.*\.sh$", r"pretrain_gpt\.py"),
        "bigcode-project/Megatron-LM": (r"^examples/.*\.(sh|slurm)$", r"pretrain_gpt\.py"),
        "swiss-ai/Megatron-LM": (r"^(examples|scripts)/.*\.(sh|sbatch)$", r"pretrain_gpt\.py"),
        "aws-samples/awsome-distributed-training": (
            r"^3\.test_cases/megatron/megatron-lm/.*\.(sh|sbatch)$", r"pretrain_gpt\.py")}),
    ("torchtitan", 2, {
        "pytorch/torchtitan": (r".*\.(toml|sh)$", r"seq_len|torchtitan\.train"),
        "aws-samples/awsome-distributed-training": (r"torchtitan/.*\.(toml|sh|sbatch)$",
                                                    r"seq_len|torchtitan.*train|train\.py")}),
    ("nanotron", 3, {"huggingface/nanotron": (r"^examples/.*\.ya?ml$", r"(?m)^parallelism:"),
                     "huggingface/smollm": (r"^text/pretraining/.*\.ya?ml$",
                                            r"(?m)^parallelism:")}),
    ("DeepSpeed", 3, {
        "deepspeedai/DeepSpeedExamples": (
            r"^applications/DeepSpeed-Chat/training/step1.*\.sh$", r"per_device_train_batch_size"),
        "deepspeedai/Megatron-DeepSpeed": (r"^examples_deepspeed/.*\.sh$", r"pretrain_gpt\.py"),
        "bigscience-workshop/Megatron-DeepSpeed": (r"^(examples/.*|run.*)\.sh$",
                                                   r"pretrain_gpt\.py")}),
]

# Shell scripts of repositories that the list above does not draw from.
SCRIPT = r"\.(sh|slurm|sbatch)$"
STARTS = r"\b(torchrun|deepspeed|accelerate launch|srun|mpiexec|mpirun|torch\.distributed\.(run|launch)|ray job submit|verl\.trainer)\b"
NOT_TRAINING = r"(?i)^(?!.*(_gen|_app|detxoify|race_|retriever|test_|_vars|wrapper|setup|install|download|build))"
SCRIPTS = [
    (name.partition("/")[2], number, {name: (NOT_TRAINING + f"(?:{paths}).*" + SCRIPT, STARTS)}) for name, number, paths in [
        ("ROCm/Megatron-LM", 3, "examples/"), ("argonne-lcf/Megatron-DeepSpeed", 6, ".*"), ("epfLLM/Megatron-LLM", 2, ".*"),
        ("lm-sys/FastChat", 3, "scripts/"), ("simplescaling/s1", 2, "train/"), ("OptimalScale/LMFlow", 3, "scripts/"),
        ("princeton-nlp/ProLong", 2, ".*"), ("radixark/miles", 8, ".*"), ("hkust-nlp/simpleRL-reason", 1, ".*"),
        ("agentica-project/rllm", 6, ".*"), ("deepspeedai/DeepSpeedExamples", 5, ".*train"),
        ("aws-samples/awsome-distributed-training", 5, ".*(?:megatron|nemo|FSDP|torchtitan|verl|trl)")]]

# Configuration files of ten programs, and 40 more scripts, of repositories that neither list above draws from.
CONFIGS = [
    ("axolotl", 3, {"magpie-align/magpie": (r"^recipes/.*\.ya?ml$", r"(?m)^base_model:"),
                    "modal-labs/llm-finetuning": (r"^config/.*\.yml$", r"(?m)^base_model:"),
                    "RLHFlow/Online-RLHF": (r"^sft/.*\.yaml$", r"(?m)^base_model:")}),
    ("LLaMA-Factory", 3, {"GAIR-NLP/LIMO": (r"^train/examples/.*\.yaml$", r"finetuning_type: full"),
                          "NovaSky-AI/SkyThought": (r"^skythought/train/.*\.yaml$", r"finetuning_type: full")}),
    ("NeMo AutoModel", 3, {"NVIDIA-NeMo/Automodel": (r"^examples/llm_(finetune|pretrain)/.*\.yaml$", r"(?m)^model:")}),
    ("NeMo-RL", 3, {"NVIDIA-NeMo/RL": (r"^examples/configs/(recipes/llm/)?[^/]*\.yaml$", r"(?m)^(policy|defaults):")}),
    ("torchtitan", 3, {"NousResearch/torchtitan": (r"train_configs/.*\.toml$", r"seq_len"),
                       "cornell-sysphotonics/ccl-bench": (r"\.toml$", r"seq_len")}),
    ("LitGPT", 3, {"Lightning-AI/litgpt": (r"^config_hub/.*\.yaml$", r"(?m)^train:")}),
    ("TRL", 3, {name: (r"^(recipes|training_configs|v1/fine-tune/configs)/.*\.yaml$", r"per_device_train_batch_size")
                for name in ("princeton-nlp/SimPO", "uclaml/SPPO", "argilla-io/notus")}),
    ("VeOmni", 3, {"ByteDance-Seed/VeOmni": (r"^configs/text/.*\.yaml$", r"(?m)^train:")}),
    ("FlagScale", 3, {"FlagOpen/FlagScale": (r"^examples/.*/train[^/]*/[^/]*\.yaml$", r"num_layers")}),
    ("NeMo", 3, {"NVIDIA/NeMo-Framework-Launcher": (
        r"^launcher_scripts/conf/(training|fine_tuning)/.*\.yaml$", r"tensor_model_parallel_size")})]
MORE_SCRIPTS = [(name.partition("/")[2], number, {name: (NOT_TRAINING + f"(?:{paths}).*" + SCRIPT, STARTS)})
                for name, number, paths in [
    ("llm-jp/scripts", 4, ".*"), ("rioyokotalab/Megatron-Llama2", 3, ".*"),
    ("LumiOpen/Megatron-DeepSpeed", 2, ".*"), ("swiss-ai/pretrain-code", 1, ".*"), ("bigscience-workshop/bigscience", 4, "train/"),
    ("PeterGriffinJin/Search-R1", 2, ".*"), ("Jiayi-Pan/TinyZero", 1, ".*"), ("SkyworkAI/Skywork-OR1", 2, ".*"),
    ("PRIME-RL/PRIME", 1, ".*"), ("PRIME-RL/TTRL", 2, ".*"), ("GAIR-NLP/ToRL", 1, ".*"),
    ("GAIR-NLP/LIMR", 1, ".*"), ("eddycmu/demystify-long-cot", 2, ".*"),
    ("QwenLM/Qwen", 1, ".*"), ("QwenLM/Qwen2.5-Coder", 1, ".*"), ("OpenBMB/MiniCPM", 1, ".*"), ("01-ai/Yi", 1, ".*"),
    ("THUDM/LongAlign", 1, ".*"), ("THUDM/LongWriter", 1, ".*"), ("jzhang38/EasyContext", 1, ".*"),
    ("dvlab-research/Step-DPO", 1, ".*"), ("uclaml/SPPO", 1, ".*"),
    ("microsoft/LMOps", 3, ".*"), ("SkyworkAI/Skywork", 1, ".*"), ("OpenLMLab/LOMO", 1, ".*")]]

# A third list of 40 scripts, with LoRA, from repositories that no list above draws from.
THIRD_STARTS = STARTS[:-3] + (r"|composer|verl\.\w+|lightning run|llamafactory-cli train|swift (?:sft|pt|rlhf)|"
                              r"python3? (?:-m )?[\w/.]*(?:train|main|tun|entrypoint|sft|dpo|ppo|grpo)\w*)\b")
THIRD_SCRIPTS = [(name.partition("/")[2], number, {name: (NOT_TRAINING + f"(?:{paths}).*" + SCRIPT, THIRD_STARTS)})
                 for name, number, paths in [
    ("databricks/megablocks", 2, "exp/"), ("alibaba/Megatron-LLaMA", 1, ".*"), ("IEIT-Yuan/Yuan-2.0", 2, "examples/(?!sc21)"),
    ("alibaba/ChatLearn", 2, ".*"), 
    ("allenai/OLMo", 2, "scripts/"), ("jzhang38/TinyLlama", 1, ".*"), ("karpathy/nanochat", 1, ".*"),
    ("princeton-nlp/LLM-Shearing", 1, ".*"),
    ("shibing624/MedicalGPT", 1, ".*"), ("pjlab-sys4nlp/llama-moe", 1, "scripts/cpt/"), ("OpenSparseLLMs/LLaMA-MoE-v2", 1, ".*"),
    ("FlagAlpha/Llama2-Chinese", 1, ".*"), ("ymcui/Chinese-LLaMA-Alpaca-3", 1, ".*"), ("hkust-nlp/deita", 1, ".*"),
    ("hkust-nlp/dart-math", 1, ".*"), ("meta-math/MetaMath", 1, ".*"), ("microsoft/ToRA", 1, ".*"),
    ("OFA-Sys/gsm8k-ScRel", 1, ".*"), ("FreedomIntelligence/HuatuoGPT-II", 1, ".*"), ("wenge-research/YAYI2", 1, ".*"),
    ("Tencent/Tencent-Hunyuan-Large", 1, ".*"), ("RUC-GSAI/YuLan-Mini", 1, ".*"), ("OpenCoder-llm/OpenCoder-llm", 1, ".*"),
    ("Qihoo360/360-LLaMA-Factory", 1, ".*"), ("huggingface/peft", 2, "examples/"), ("ContextualAI/HALOs", 1, ".*"),
    ("TsinghuaC3I/MARTI", 1, ".*"), ("hiyouga/EasyR1", 1, ".*"), ("Unakar/Logic-RL", 1, ".*"),
    ("ruixin31/Spurious_Rewards", 1, ".*"), ("sail-sg/understand-r1-zero", 1, ".*"), ("ZihanWang314/RAGEN", 1, ".*"),
    ("ChenxinAn-fdu/POLARIS", 1, ".*"), ("LLM360/Reasoning360", 1, ".*"), ("alibaba/ROLL", 1, ".*")]]

# Files of other models than language models of text, of other machines than GPUs, and of other work
# than training.
NOT_THE_PATH = re.compile(
    r"(?i)lora|vlm?\b|[-_/]vl|vision|omni|multimodal|audio|infer|eval|deploy|serve|export|npu|"
    r"ascend|bert|t5|retro|mamba|rwkv|gmlp|emb|rerank|seq_cls|flux|(^|/)tests?/|debug|generat|quant|convert|"
    r"preprocess|ktransformers|cpu|geo3k|moss|whisper|llava|pixtral|idefics|gemma-?3n|voxtral")
NOT_THE_TEXT = re.compile(
    r"(?i)lora|--adapters?\b|\badapter: *\w|finetuning_type: *(freeze|oft)|--use_peft|"
    r"pixel|image|\bvit\b|processor_type|train_type +(?!full)\w|tuner_type +(?!full)\w")
THIRD_EXCLUDES = (re.compile(NOT_THE_PATH.pattern.replace("lora|", "asr|mnli|race|visuali|controlnet|dreambooth|gptq|", 1)),
                  re.compile(r"(?i)pixel|\bvit\b|processor_type|use_cpu|--visual"))


def git(repository, *words):
    return subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=True,
                          text=True, errors="replace").stdout


def without_comments(text):
    return "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in text.splitlines())


def main():
    clones = pathlib.Path(sys.argv[1])
    generator = random.Random(SEED)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["framework", "repository", "path", "commit"])
    is_third = sys.argv[2:] == ["third"]
    not_the_path, not_the_text = THIRD_EXCLUDES if is_third else (NOT_THE_PATH, NOT_THE_TEXT)
    lists = {"scripts": SCRIPTS, "configs": CONFIGS, "more": MORE_SCRIPTS, "third": THIRD_SCRIPTS}
    for framework, number, sources in lists[sys.argv[2]] if sys.argv[2:] else FRAMEWORKS:
        found = []
        for name, (paths, words) in sources.items():
            repository = clones / name.replace("/", "+") / "repo"
            commit = git(repository, "rev-parse", "HEAD").strip()
            for path in git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines():
                if not re.search(paths, path) or not_the_path.search(path):
                    continue
                text = without_comments(git(repository, "show", f"HEAD:{path}"))
                if re.search(words, text) and not not_the_text.search(text):
                    found.append((framework, name, path, commit))
        print(f"{framework}: {number} of {len(found)}", file=sys.stderr)
        for row in sorted(generator.sample(sorted(found), min(number, len(found)))):
            out.writerow(row)


if __name__ == "__main__":
    main()
