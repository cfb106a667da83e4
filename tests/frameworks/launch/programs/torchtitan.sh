NGPU=${NGPU:-"8"}
CONFIG=${CONFIG:-"llama3_8b"}
torchrun --nproc_per_node=${NGPU} --tee 3 -m torchtitan.train --module llama3 --config ${CONFIG} "$@"
