#!/bin/bash
#SBATCH --nodes=8
nodes=$(scontrol show hostnames $SLURM_JOB_NODELIST)
if docker ps; then export engine=docker; else export engine=podman; fi
srun bash -c '${engine} run --rm --ipc=host $IMAGE /bin/bash -c \
 "cd ${HOME}; TP=2 PP=4 bash examples/inner/train.sh 2>&1 | tee log.txt"'
