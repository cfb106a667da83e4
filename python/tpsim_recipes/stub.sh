#!@BASH@ -p
# Stands for a program in a launch script: records the words, folder and environment of the command. Then starts what a launcher
# would start: a shell, a job file, or a command on another host. Its output is unknown: @BASE@/outputs states what to print.
base=@BASE@ bash=@BASH@
id=${EPOCHREALTIME/[.,]/}$$
name=${TPSIM_NAME:-${0##*/}} before=()
unset TPSIM_NAME
case $name in
  sleep) exit 0 ;;
  sh | dash | zsh | ksh) exec "$bash" "$@" ;;
  date) case " $* " in *" -d"* | *" --date"* | *" -r"*) ;; *) set -- --date=@1700000000 "$@" ;; esac
    exec "$base/real-date" "$@" ;;
  mktemp) place=${TMPDIR:-/tmp}/tmp.$(ls "$base/made" | wc -l)
    : >"$base/made/${place##*.}"
    case " $* " in *" -d"* | *" --directory"*) mkdir -p "$place" ;; *) : >"$place" ;; esac
    echo "$place"
    exit 0 ;;
esac
words=("$name" "$@")
[[ $TPSIM_BEFORE ]] && mapfile -d '' -t before <"$TPSIM_BEFORE"

slurm() { # exports the variables in which Slurm states the options "$@"
  local key value
  while (($#)); do
    case $1 in
      --*=*) key=${1%%=*} value=${1#*=} ;;
      -[a-zA-Z]?*) key=${1:0:2} value=${1:2} ;;
      *) key=$1 value=$2 ;;
    esac
    shift
    case $key in
      --nodes | -N) value=${value##*[-:]}; export SLURM_NNODES=$value SLURM_JOB_NUM_NODES=$value ;;
      --ntasks-per-node) export SLURM_NTASKS_PER_NODE=$value ;;
      --ntasks | -n) export SLURM_NTASKS=$value SLURM_NPROCS=$value ;;
      --gpus-per-node | --gres) value=${value%%,*} value=${value##*:}; export SLURM_GPUS_PER_NODE=$value SLURM_GPUS_ON_NODE=$value ;;
      --gpus | -G) export SLURM_GPUS=${value##*:} ;;
      --cpus-per-task | -c) export SLURM_CPUS_PER_TASK=$value ;;
      --job-name | -J) export SLURM_JOB_NAME=$value ;;
    esac
  done
}

is_script() {
  local line
  [[ -f $1 && $1 != *.py && ! $1 -ef $base/stubs/any ]] || return 1
  [[ $1 == *.@(sh|slurm|sbatch) ]] && return 0
  read -r line <"$1" 2>/dev/null
  [[ $line == '#!'*sh* ]]
}

submit() { # runs the job that the words, or standard input, state
  local i job= text= nodes
  for ((i = 1; i < ${#words[@]}; ++i)); do
    case ${words[i]} in --wrap=*) text=${words[i]#*=} ;; --wrap) text=${words[i + 1]} ;; esac
    [[ $text || ${words[i]} == -* || ! -f ${words[i]} ]] || { job=${words[i]}; break; }
  done
  if [[ ! $job ]]; then
    job=$base/log/$id.job
    if [[ $text ]]; then printf '%s\n' "$text" >"$job"; else head -c 1000000 >"$job"; fi
  fi
  local -a lines
  read -r -d '' -a lines < <(sed -n 's/^#SBATCH//; T; s/[ \t]#.*//; p' "$job")
  slurm "${lines[@]}"
  slurm "${words[@]:1:i-1}"
  if [[ $SLURM_NNODES ]]; then
    export SLURM_JOB_NODELIST="node[1-$SLURM_NNODES]" SLURM_NODELIST="node[1-$SLURM_NNODES]"
    [[ $SLURM_NTASKS_PER_NODE ]] && export SLURM_TASKS_PER_NODE="$SLURM_NTASKS_PER_NODE(x$SLURM_NNODES)"
  fi
  nodes=$(sed -nE 's/^#PBS .*\b(select|nodes)=([0-9]+).*/\2/p' "$job" | tail -1)
  if [[ $nodes ]]; then
    export PBS_NODEFILE=$base/nodes PBS_JOBID=1.tpsim PBS_O_WORKDIR=$PWD
    printf 'node%d\n' $(seq "$((nodes < 10000 ? nodes : 10000))") >"$PBS_NODEFILE"
  fi
  export SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=1 SLURM_JOBID=1 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_LOCALID=0
  "$bash" "$job" "${words[@]:i+1}" >>"$base/out" 2>>"$base/err" </dev/null
}

enter() { # starts bash with "$@"; its commands have the words before number $1 as launcher
  printf '%s\0' "${before[@]}" "${words[@]:0:$1}" >"$base/log/$id.before"
  export TPSIM_BEFORE=$base/log/$id.before
  shift
  exec "$bash" "$@"
}

shopt -s extglob
case $name in
  sbatch | qsub | bsub) submit ;;
  ssh | pdsh)
    i=1
    while [[ ${words[i]} == -* ]]; do [[ ${words[i]} == -[bcDEeFIiJLlmOopQRSWw] ]] && ((++i)); ((++i)); done
    [[ $name == ssh ]] && ((++i))
    ((i < ${#words[@]})) && enter "$i" -c "${words[*]:i}" ;;
  git | pip | pip3 | apt | apt-get) ;;
  *)
    for ((i = 1; i < ${#words[@]}; ++i)); do
      word=${words[i]}
      [[ ${words[i - 1]} == @(-e|--env|-x) && $word == [A-Za-z_]*=* ]] && export "$word"
      [[ $word == @(*/|)@(ba|da|z|k|)sh ]] && ((i + 1 < ${#words[@]})) && enter "$i" "${words[@]:i+1}"
      is_script "$word" && [[ ${words[i - 1]} != --* || ${words[i - 1]} == @(--|--*=*|--no-python|--no_python) ]] && enter "$i" "${words[@]:i}"
    done ;;
esac

captured=1
[[ /dev/fd/1 -ef $base/out || /dev/fd/1 -ef $base/err || /dev/fd/1 -ef /dev/null ]] && captured=0
record() { printf '%s\0' "$captured" "$PWD" "${before[@]}" "${words[@]}" >"$base/log/$id.command"; }
record
cat /proc/$$/environ >"$base/log/$id.environment" 2>/dev/null
said="${words[*]} "
while IFS= read -r answer; do
  key= rest=$answer
  [[ $answer == *! && $said == "${answer%!} "* ]] && { : >"$base/used/${answer//\//_}"; exit 1; }
  while [[ $rest == *=* ]]; do
    key+=${rest%%=*} rest=${rest#*=}
    [[ $said == "$key "* ]] && { : >"$base/used/${answer//\//_}"; printf '%b\n' "$rest"; exit 0; }
    key+==
  done
done <"$base/answers"
while IFS= read -r -d '' key; do [[ $said == "$key" ]] && { echo @ENDS_WAIT@; exit 0; }; done <"$base/waits"
if ((captured)) && [[ $name == python* && -x $base/real-python3 && ( $1 == -c || -f $1 ) ]]; then
  if text=$("$base/real-python3" -S -E -s -B "$@" 2>/dev/null </dev/null); then # without packages: torch and ray do not exist
    captured=0
    record
    printf '%s\n' "$text"
    exit 0
  fi
fi
status=0
while IFS= read -r -d '' failing; do [[ $said == "$failing" ]] && status=1; done <"$base/failing"
((captured)) || exit "$status"
while IFS= read -r -d '' key && IFS= read -r -d '' value; do
  [[ $key == "$said" || $key == '*' ]] || continue
  case $value in
    text) echo "tpsimQc${id}Q" ;;
    @NUMBER@) printf '%s\n' "$value" "$value" "$value" ;;
    *) printf '%s\n' "$value" ;;
  esac
  break
done <"$base/outputs"
exit "$status"
