#!/usr/bin/env python3
"""Checks that scripts run under bash as without tpsim, that what they do not state is asked for, and that none gets out.

    shell_test.py SOURCES FOLDER [--cases N] [--seed N] [--program TPSIM]

Random scripts are drawn by seed. The words that reach a trainer in the jail must equal those under bash alone, with stubs of this
test. Unknown values must be named where they reach the trainer or decide what reaches it, and nowhere else.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

RECORDER = "#!/bin/bash\nprintf '%s\\0' \"${0##*/}\" \"$@\" >>\"$RECORD\"\nprintf '\\1' >>\"$RECORD\"\n"


class Grammar:
    """Draws scripts. `unknown` lists the names that must be asked for, `harmless` those that must not."""

    def __init__(self, generator, folder):
        self.random, self.folder = generator, folder
        self.lines, self.count = [], 0
        self.unknown, self.harmless, self.files = set(), set(), {}

    def name(self):
        self.count += 1
        return f"{self.random.choice(['TP', 'pp', 'Size', 'ARGS', 'x_'])}{self.count}"

    def number(self):
        return str(self.random.choice([1, 2, 4, 8, 16, 32, 128]))

    def value(self):
        """Defines a variable in one of many ways and returns its expansion, which is one word."""
        name, a, b = self.name(), self.number(), self.number()
        ways = [
            f"{name}={a}", f"export {name}={a}", f"{name}=${{{name}:-{a}}}", f": ${{{name}:={a}}}", f"{name}=$(({a} * {b} + 1))",
            f"{name}=$(echo {a})", f"{name}=`expr {a} + {b}`", f"if [ {a} -gt {b} ]; then {name}={a}; else {name}={b}; fi",
            f"[[ {a} == {b} && x == x* ]] && {name}={a} || {name}={b}", f"case {a}b in [1-4]b) {name}=2 ;; *b) {name}={b} ;; esac",
            f"{name}=0; for i in {a} {b} 3; do {name}=$(({name} + i)); done", f"f{name}() {{ local y=$1; {name}=$y; }}; f{name} {a}",
            f"export {name}={a}; {name}=$(bash -c 'echo ${name}')", f"source <(echo '{name}={a}')", f"N{name}=R{name}; R{name}={a}; {name}=${{!N{name}}}",
            f"mapfile -t A{name} < <(seq {a}); {name}=${{#A{name}[@]}}", f"for ((i = 0; i < {a}; i++)); do (({name} += 2)); done", f"{name}=$(echo 'echo {a}' | bash)",
            f"({name}={a}); {name}={b}", f"read -r {name} z <<< '{a} {b}'", f"{name}=pre-{a}; {name}=${{{name}#pre-}}",
            f"printf -v {name} '%s' {a}", f"set -- {a} {b}; {name}=$2", f"declare -i {name}={a}+{b}", f"let {name}={a}*2",
            f"{name}=$((010 - 6))", f"while read -r line; do {name}=$line; done < <(printf '{a}\\n{b}\\n')",
            f"while [[ ${{{name}:-0}} -lt 3 ]]; do {name}=$((${{{name}:-0}} + 1)); done", f"eval '{name}={a}'",
            f"echo {a} > v{name}; echo {b} >> v{name}; {name}=$(tail -n 1 v{name})", f"{name}=$(cat <<E\n{a}\nE\n)",
            f"[ ! -z '' -a -z '{a}' ] && {name}={a} || {name}={b}", f"{name}=AbC{a}; {name}=${{{name},,}}", f"g{name}() {{ return 1; }}; g{name} || {name}={a}",
            f"{name}=({a} {b}); {name}=${{{name}[1]}}", f"[[ v{a} =~ ^v([0-9]+)$ ]] && {name}=${{BASH_REMATCH[1]}}", f"{name}={{1..3}}; {name}=${{#{name}}}",
        ]
        self.lines.append(self.random.choice(ways))
        return f"${{{name}}}"

    def sourced(self):
        name, value = self.name(), self.number()
        kind = self.random.choice(["there", "written", "gone"])
        if kind == "there":
            self.files[f"conf/{name}.sh"] = f"{name}={value}\n"
            self.lines.append(self.random.choice([f"source conf/{name}.sh", f". ./conf/{name}.sh", f'source "$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)/conf/{name}.sh"']))
        elif kind == "written":
            self.lines.append(f"cat > /tmp/{name}.sh <<'E'\n{name}={value}\nE\nsource /tmp/{name}.sh")
        else:
            self.lines.append(f"{name}={value}\nsource /opt/gone/{name}.sh 2>/dev/null")
        return f"${{{name}}}"

    def words(self):
        """Returns words of an option."""
        option = f"--{self.random.choice(['tensor-size', 'seq', 'lr', 'pipeline'])}-{self.count}"
        drawn = self.random.random()
        if drawn < 0.55:
            return f"{option} {self.value()}"
        if drawn < 0.65:
            return f"{option}={self.sourced()}"
        if drawn < 0.75:
            name = self.name()
            self.lines.append(f"{name}=({option} {self.value()} '--name=a b')\n{name}+=(--more)")
            return f'"${{{name}[@]}}"'
        if drawn < 0.80:
            name = self.name()
            self.lines.append(f'{name}="{option} {self.number()} --flag"')
            return f"${name}"
        if drawn < 0.95:
            return self.unstated(option)
        return f"{option} '{self.random.choice(['a b', '%x', '[1]*12', '*'])}'"

    def unstated(self, option):
        self.count += 1
        name = f"UNSET{self.count}"
        way = self.random.randrange(20)
        other, word = f"OTHER{self.count}", self.random.choice(["h100", "large", "8"])
        if way == 0:
            self.unknown.add("$" + name)
            return f"{option} ${name}"
        if way == 1:
            self.unknown.add("$" + name)
            self.lines.append(f'A{name}=""; if [ -n "${name}" ]; then A{name}="--extra"; fi')
            return f"$A{name}"
        if way == 2:
            self.harmless.add(name)
            return f"{option} ${{{name}:-{self.number()}}}"
        if way == 3:
            self.harmless.add(name)
            self.lines.append(f"echo ${name}")
            return f"{option} 1"
        if way == 4:
            self.unknown.add(f"$(helper{self.count})")
            self.lines.append(f"A{name}=$(helper{self.count})")
            return f'{option} "$A{name}"'
        if way == 5:
            self.unknown.add(f"$(counter{self.count})")
            self.lines.append(f"A{name}=$(counter{self.count} | wc -l)")
            return f"{option} $A{name}"
        if way == 6:
            self.unknown.add(f"probe{self.count}")
            self.lines.append(f"if probe{self.count}; then A{name}=1; else A{name}=2; fi")
            return f"{option} $A{name}"
        if way == 7:
            self.unknown.add(f"$(asks{self.count})")
            self.lines.append(f'if [ "$(asks{self.count})" = h100 ]; then A{name}=1; else A{name}=2; fi')
            return f"{option} $A{name}"
        tests = {  # conditions, with what they depend on
            8: (f'[ "${name}" = {word} ]', [f"${name}"]), 9: (f'[[ "${name}" == *{word}* ]]', [f"${name}"]),
            10: (f'[ "${name}" = {word} ] && [ "${other}" = nb ]', [f"${name}", f"${other}"]), 11: (f'[ -n "${name}" ] && [ -z "${other}" ]', [f"${name}"]),
            12: (f'echo "${name}" | grep -q {word}', [f"${name}"]), 13: (f"first{self.count} && ! last{self.count}", [f"last{self.count}"]),
            14: (f'C{name}={name}; [ "${{!C{name}}}" == {word} ]', [f"${name}"]), 15: (f"(( $(asks{self.count} | wc -w) > 0 ))", [f"$(asks{self.count})"])}
        if way in tests:
            condition, names = tests[way]
            self.unknown.update(names)
            self.lines.append(f"if {condition}; then A{name}=1; else A{name}=2; fi")
            return f"{option} $A{name}"
        if way == 16:
            self.unknown.add("$" + name)
            self.lines.append(f'case "${name}" in {word} | zz) A{name}=1 ;; *) A{name}=2 ;; esac')
            return f"{option} $A{name}"
        if way == 17:
            self.unknown.add("$" + name)
            return f"{option} ${{{name}:+--flag}}"
        self.harmless.add(f"loud{self.count}")
        self.lines.append(f"loud{self.count} > /dev/null" if way == 18 else f'loud{self.count} && echo yes; if [ "${{{name}:-false}}" = true ]; then B{name}=1; fi')
        return f"{option} 1"

    def script(self):
        words = " ".join(self.words() for _ in range(self.random.randint(1, 5)))
        start = self.random.choice(["torchrun", "/opt/none/bin/python -m torch.distributed.run", "python3", "srun python", "/usr/bin/python3"])
        command = f"{start} train.py {words}"
        way = self.random.randrange(6)
        if way == 0:
            command = f'run() {{ {start} train.py "$@"; }}\nrun {words}'
        elif way == 1:
            command = f"cat > go.sh <<E\n{command}\nE\nbash go.sh"
        elif way == 2:
            command = f"{command} 2>&1 | tee log"
        elif way == 3:
            command = f'CMD="{start} train.py"\n$CMD {words} &\nwait'
        shebang = self.random.choice(["#!/bin/bash", "#!/usr/bin/env bash\nset -x"])
        return shebang + "\n" + "\n".join(self.lines) + "\n" + command + "\n"


def bare(script, folder, stubs):
    """Returns the words with which bash alone starts train.py."""
    record = folder / "record"
    record.write_text("")
    for path in re.findall(r"/opt/\S+/bin/python|/usr/bin/python3", script):
        script = script.replace(path, str(stubs / "python"))
    (folder / "bare.sh").write_text(script)
    environment = {"PATH": f"{stubs}:/usr/bin:/bin", "RECORD": str(record), "HOME": str(folder),
                   "BASH_FUNC_command_not_found_handle%%": "() { return 0; }"}
    subprocess.run(["bash", "bare.sh"], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    found = [one.split("\0")[:-1] for one in record.read_text().split("\1")]
    return [words[words.index("train.py"):] for words in found if "train.py" in words]


def check_random(shell, arguments, folder):
    generator, failures, needless, asked = random.Random(arguments.seed), [], [], 0
    stubs = folder / "stubs"
    stubs.mkdir()
    for name in ("torchrun", "python", "python3", "srun"):
        (stubs / name).write_text(RECORDER)
        (stubs / name).chmod(0o755)
    for case in range(arguments.cases):
        grammar = Grammar(generator, folder)
        script = grammar.script()
        place = folder / f"case{case}"
        (place / "conf").mkdir(parents=True)
        for name, text in grammar.files.items():
            (place / name).write_text(text)
        (place / "train.sh").write_text(script)
        answer = shell.answer_of(argparse.Namespace(file=str(place / "train.sh"), path=str(place / "train.sh"), set=[], answer=[], run=False, trust=False))
        wanted = bare(script, place, stubs)
        if "commands" not in answer:
            failures.append((case, script, answer))
            continue
        words = [one["words"] for one in answer["commands"] if "train.py" in one["words"]]
        found = [one[one.index("train.py"):] for one in words]
        plain = [[re.sub("\1[^\2]*\2", "", word) for word in one] for one in found]
        plain = [[word for word, marked in zip(one, other) if word or not marked.startswith("\1\1")] for one, other in zip(plain, found)]
        named = {re.sub("\1|\2", "", mark) for one in found for word in one for mark in re.findall("\1+[^\2]*\2", word)}
        named |= {one["unknown"] for one in answer["variants"]}
        asked += bool(named)
        needless += [(script, named - grammar.unknown)] * bool(named - grammar.unknown)
        if [sorted(one) for one in plain] != [sorted(one) for one in wanted] or plain != wanted or grammar.unknown - named or any(name in "".join(named) for name in grammar.harmless):
            failures.append((case, script, {"jail": found, "bash": wanted, "named": named, "unknown": grammar.unknown, "harmless": grammar.harmless}))
        shutil.rmtree(place)
    print(f"{arguments.cases} scripts: {len(failures)} differ, {asked} ask, {len(needless)} ask for more than matters")
    return failures + ([("needless", *one) for one in needless] if len(needless) * 100 > 3 * arguments.cases else [])


def hostile(folder):
    """Returns scripts that try to leave the jail, with what the words of their last command must not contain."""
    secret = pathlib.Path(tempfile.mkdtemp(prefix="tpsim-outside-")) / "secret"
    secret.write_text("secret-text")
    pid = os.getpid()
    return secret, {
        "read outside": f'X=$(cat {secret} /etc/passwd /proc/1/environ 2>/dev/null | tr "\\n" " "); torchrun train.py --x "$X"',
        "write outside": f"echo broken > {secret}; rm -rf {secret.parent}; echo broken > /usr/bin/true; torchrun train.py --x 1",
        "write own files": "echo broken > own.txt; rm -rf keep; torchrun train.py --x 1",
        "socket": "exec 3<>/dev/tcp/127.0.0.1/22 && X=connected; torchrun train.py --x \"$X\"",
        "bomb": ":(){ :|:& };:; sleep 100",
        "endless": "while :; do :; done",
        "huge output": "yes tpsim | head -c 200000000; torchrun train.py --x 1",
        "huge variable": "X=x; while :; do X=$X$X; done",
        "signals": f"kill -9 {pid}; kill -9 -1; kill -9 1; kill -9 $PPID; torchrun train.py --x 1",
        "namespaces": "unshare -Ur mount -t tmpfs none /usr && X=inside; torchrun train.py --x \"$X\"",
        "kernel": "echo 1 > /proc/sys/kernel/core_pattern && X=written; torchrun train.py --x \"$X\"",
        "background": f"(sleep 1; while :; do read -t 1 < /dev/zero; done) & disown; torchrun train.py --x 1 --marker{pid}",
        "device": "mknod /tmp/disk b 8 0 && X=made; chroot / true && X=root; torchrun train.py --x \"$X\"",
    }


def check_hostile(shell, folder):
    secret, scripts = hostile(folder)
    failures = []
    for name, text in scripts.items():
        place = folder / ("hostile " + name)
        (place / "keep").mkdir(parents=True)
        (place / "own.txt").write_text("mine")
        (place / "train.sh").write_text(text + "\n")
        answer = shell.answer_of(argparse.Namespace(file=str(place / "train.sh"), path=str(place / "train.sh"), set=[], answer=[], run=False, trust=False))
        seen = str([one["words"] for one in answer.get("commands", [])])
        got_out = any(word in seen for word in ("secret-text", "root:", "connected", "inside", "written", "made", "HOME=/", "SHELL="))
        is_changed = not secret.exists() or secret.read_text() != "secret-text" or (place / "own.txt").read_text() != "mine" or not (place / "keep").is_dir()
        if got_out or is_changed or name in ("bomb", "endless", "huge variable") and "error" not in answer:
            failures.append((name, text, answer))
    shutil.rmtree(secret.parent, ignore_errors=True)
    for process in os.listdir("/proc"):
        try:
            if process.isdigit() and int(process) != os.getpid() and f"--marker{os.getpid()}" in pathlib.Path(f"/proc/{process}/cmdline").read_text(errors="replace"):
                failures.append(("background", process, "is alive"))
        except OSError:
            continue
    return failures


MODEL = ("--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50304 "
         "--bf16 --micro-batch-size 1 --global-batch-size 64")
# Scripts whose import asks for something, and options that answer as the message says.
DEEPSPEED = MODEL.replace("--bf16", "--fp16").replace("--vocab-size", "--pad-vocab-size-to")
REMEDIES = [
    (f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP", "--set TP=VALUE", ["--set", "TP=2"]),
    (f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $1", "--set 1=VALUE", ["--set", "1=2"]),
    (f"TP=$(python3 tp.py)\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP", "--answer 'python3 tp.py=TEXT'", ["--answer", "python3 tp.py=2"]),
    (f"TP=$(python3 tp.py)\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP", "or add --run", ["--run"]),
    (f"TP=$(query --format=csv,noheader)\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP", "csv,noheader=TEXT'",
     ["--answer", "query --format=csv,noheader=2"]),
    (f"GPUS=$(nvidia-smi -L | wc -l)\ntorchrun --nproc_per_node $GPUS pretrain_gpt.py {MODEL}", "--answer 'nvidia-smi -L=TEXT'", ["--answer", "nvidia-smi -L=a\\nb\\nc\\nd"]),
    (f"if probe; then TP=2; else TP=4; fi\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP", "--answer 'probe!' if not", ["--answer", "probe!"]),
    (f"if [ -n \"$FP\" ]; then A='--use-distributed-optimizer'; fi\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} $A", "--set FP=VALUE", ["--set", "FP="]),
    (f"if [ -f /data/fast ]; then A=2; else A=1; fi\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $A", "--answer '/data/fast=' if so", ["--answer", "/data/fast="]),
    (f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} $(extra)", "--answer 'extra=TEXT'", ["--answer", "extra=--tensor-model-parallel-size 2"]),
    (f"for t in 1 2; do torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $t; done", "--command N", ["--command", "2"]),
    ("while [[ $# -gt 0 ]]; do case $1 in --tp) TP=$2; shift 2 ;; *) exit 1 ;; esac; done\nif [ -z \"$TP\" ]; then exit 1; fi\n"
     f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP", "--set TP=VALUE", ["--set", "@=--tp 2"]),
]
# Scripts whose import asks for nothing: they state defaults of their own, or wait for a cluster.
PLAIN = [
    f"OUT=$1\nTP=$2\nif [ \"$OUT\" == \"\" ]; then\n  OUT=out\nfi\n[[ -z $TP ]] && TP=2\n"
    f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --save $OUT --tensor-model-parallel-size $TP",
    "while true; do\n  N=$(python3 -c 'import ray' 2>/dev/null || echo 0)\n  if [ \"$N\" -ge 16 ]; then break; fi\n  sleep 5\ndone\n"
    f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL}",
    # Variables without which `set -u` ends the script, but that reach nothing that counts; a limit that the jail cannot raise; a
    # file that is read and missing.
    f"set -eu\nulimit -n 1048576\nexport PYTHONPATH=$WORKING_DIR\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --wandb-name <redacted key",
    # The rank of the first process, and a job of Slurm that states its tasks.
    f"if [ \"$PET_NODE_RANK\" -eq 0 ]; then\n  torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL}\nfi",
    "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nset -eu\nN=$(echo $SLURM_TASKS_PER_NODE | cut -d '(' -f 1)\n"
    f"mpirun -np $((N * SLURM_JOB_NUM_NODES)) --npernode $N -x NAME=3 bash -c 'set -u; echo $NAME; python pretrain_gpt.py {MODEL}'",
    "#!/bin/bash\n#PBS -l select=2\nset -eu\nN=$(wc -l < $PBS_NODEFILE)\n" + f"torchrun --nnodes $N --nproc_per_node 8 pretrain_gpt.py {MODEL}",
    # A configuration that the script writes in a folder of another machine, and files of this repository by their path on it.
    "cd /home/gone/Megatron\ncat <<E > ds.json\n{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 1}, \"fp16\": {\"enabled\": true}}\nE\n"
    f"deepspeed --num_gpus 8 pretrain_gpt.py {DEEPSPEED} --deepspeed --deepspeed_config ./ds.json",
    f"deepspeed --num_gpus 8 pretrain_gpt.py {DEEPSPEED} --deepspeed --deepspeed_config /home/gone/conf/here/ds.json",
    # A vocabulary that the script leaves to a tokenizer, and a value that does not matter.
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 --seq-length 4096 "
    "--max-position-embeddings 4096 --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --bf16 "
    "--position-embedding-type rope --tokenizer-type Llama2Tokenizer --tokenizer-model my-100k.model --micro-batch-size 1 --global-batch-size 64 --seed $SEED",
    # A log in a folder that does not exist, below a folder of another machine.
    f"cd /home/gone/Megatron || exit\nCUDA_LAUNCH_BLOCKING=1 torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} > out/a_12:30.log 2>&1 &",
    # Text that the user replaces, in assignments and in words; a default of an argument; a machine's number of cores.
    "DATA=<Specify path and file prefix>_text_document\nOPTIONS=\"--save <PATH TO CHECKPOINTS DIRECTORY> --split 98,2,0\"\n"
    f"srun --container-mounts '<DIRECTORIES TO MOUNT>' -N 1 --ntasks-per-node 8 sh -c \"python pretrain_gpt.py {MODEL} --data-path $DATA $OPTIONS\"",
    "TP=2\nif [ -n \"${2}\" ]; then\n    TP=$2;\nfi\n" + f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP",
    f"for i in {{1..9}}; do torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --num-workers $i | tee log$i; A$i=$(grep loss log$i); done",
    "while [[ $# -gt 0 ]]; do case $1 in --lr) LR=$2; shift 2 ;; *) exit 1 ;; esac; done\n"
    f"torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --num-workers $(($(nproc) / 2 / 8))",
    "source /home/gone/conf/here/size.sh\n" + f"torchrun --nproc_per_node $SIZE pretrain_gpt.py {MODEL}",
]


def check_program(program, folder):
    failures = []
    place = folder / "train.sh"

    def imported(*options, before=()):
        run = subprocess.run([*before, program, "import", str(place), "--cluster", "dgx-h100", "--json", *options], capture_output=True, text=True, check=False)
        return run.returncode, run.stderr
    (folder / "tp.py").write_text("print(2)")
    (folder / "conf/here").mkdir(parents=True, exist_ok=True)
    (folder / "conf/here/ds.json").write_text('{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}, "fp16": {"enabled": true}}')
    (folder / "conf/here/size.sh").write_text("SIZE=8\n")
    for text in PLAIN:
        place.write_text(text + "\n")
        code, said = imported()
        if code != 0:
            failures.append(("asked", text, said))
    for text, advice, options in REMEDIES:
        place.write_text(text + "\n")
        code, said = imported()
        if code == 0 or advice not in said:
            failures.append(("not asked", text, said))
        code, said = imported(*options)
        if code != 0:
            failures.append(("remedy", text, said))
    forbid = ["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', "sh"]
    place.write_text(f"TP=2\ntorchrun --nproc_per_node 8 pretrain_gpt.py {MODEL} --tensor-model-parallel-size $TP\n")
    if subprocess.run([*forbid, "true"], capture_output=True, check=False).returncode == 0:
        code, said = imported(before=forbid)
        if code == 0 or "--trust" not in said:
            failures.append(("without namespaces", code, said))
        code, said = imported("--trust", before=forbid)
        if code != 0 or "without isolation" not in said:
            failures.append(("--trust", code, said))
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=pathlib.Path, help="folder of tpsim_recipes")
    parser.add_argument("folder", type=pathlib.Path, help="empty folder for files")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", help="tpsim; without it, only the runner is checked")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.sources))
    from tpsim_recipes import shell  # pylint: disable=import-outside-toplevel,import-error
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    folder = arguments.folder.resolve()
    start = time.monotonic()
    failures = check_random(shell, arguments, folder)
    failures += check_hostile(shell, folder)
    if arguments.program:
        failures += check_program(arguments.program, folder)
    for one in failures[:5]:
        print(*one, sep="\n", end="\n\n")
    print(f"{len(failures)} failures, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
