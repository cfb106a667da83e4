HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" &>/dev/null && pwd)"
source "${HERE}/models/words-8b.sh"
RUN=(--hf-checkpoint /root/words-8b --rollout-batch-size 32 --n-samples-per-prompt 8
  --rollout-max-response-len 4096 --global-batch-size 256)
PERF=(--tensor-model-parallel-size 2 --sequence-parallel --use-dynamic-batch-size
  --max-tokens-per-gpu 8192 --recompute-granularity full --recompute-method uniform
  --recompute-num-layers 1)
ray job submit --address="http://127.0.0.1:8265" -- python3 train.py --actor-num-nodes 1 \
  --actor-num-gpus-per-node 8 --colocate ${MODEL_ARGS[@]} ${RUN[@]} ${PERF[@]} \
  --attention-dropout 0.0 --hidden-dropout 0.0 --attention-backend flash --lr 1e-6
