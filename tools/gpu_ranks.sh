#!/usr/bin/env bash
# Runs the ranks of a job as processes on the first GPU of this machine. NCCL counts each process as
# a host. --node: runs every rank on a separate GPU, as torchrun does.
#   gpu_ranks.sh [--node] [--stop] RANKS COMMAND...
# Prints rank 0's output. Exit code 0: all ranks printed the same output. --stop: suspends the last
# rank after five seconds. Exit code 0 then means that all other ranks report a timeout (exit code
# 4).
set -uo pipefail
stop=0 node=0
[ "${1:-}" = --node ] && { node=1; shift; }
[ "${1:-}" = --stop ] && { stop=1; shift; }
ranks=$1
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export WORLD_SIZE=$ranks LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000))
[ "$node" -eq 1 ] || export NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo NCCL_MAX_CTAS=2 NCCL_MULTI_RANK_GPU_ENABLE=1
pids=()
for ((rank = 0; rank < ranks; ++rank)); do
  if [ "$node" -eq 1 ]; then
    export LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$ranks
  else
    export NCCL_HOSTID=host$rank
  fi
  RANK=$rank "$@" >"$place/$rank.out" 2>"$place/$rank.err" &
  pids+=($!)
done
last=${pids[ranks - 1]}
if [ "$stop" -eq 1 ]; then
  sleep 5
  # Suspends the child processes of tpsim too.
  kill -STOP "$last" $(pgrep -P "$last") 2>/dev/null
fi
code=0
for ((rank = 0; rank < ranks - stop; ++rank)); do
  own=0
  wait "${pids[rank]}" || own=$?
  [ "$own" -eq 0 ] || code=$own
done
if [ "$stop" -eq 1 ]; then
  kill -KILL "$last" $(pgrep -P "$last") 2>/dev/null
  cat "$place"/*.err >&2
  [ "$code" -eq 4 ] && grep -qs "another rank has stopped or hangs" "$place"/*.err && exit 0
  echo "gpu_ranks.sh: failed: the other ranks did not report the stopped rank (exit code $code)" >&2
  exit 1
fi
cat "$place/0.out"
cat "$place"/*.err >&2
exit "$code"
