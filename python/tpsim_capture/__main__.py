"""python -m tpsim_capture [options] train.py ARGS"""
import argparse
import os
import runpy
import sys

from .guard import CaptureError


def main():
    parser = argparse.ArgumentParser(prog="python -m tpsim_capture", description=(
        "Runs a training script on tensors without storage until one step is recorded, and writes the "
        "step for tpsim simulate --program. No GPU is needed."))
    parser.add_argument("--out", default="step.json", help="file of the step (default: step.json)")
    parser.add_argument("--gpu", default="h100", help="GPU that torch.cuda describes (default: h100)")
    parser.add_argument("--world", type=int, default=int(os.environ.get("WORLD_SIZE", "1")), help="number of ranks")
    parser.add_argument("--rank", type=int, default=0, help="rank that is recorded")
    parser.add_argument("--gpus-per-node", type=int, default=8)
    parser.add_argument("--step", type=int, default=2, help="optimizer step that is recorded (default: 2)")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is a module")
    parser.add_argument("script")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    try:
        from .session import Session
        session = Session(asked.gpu, asked.world, asked.rank, asked.gpus_per_node, asked.step)
        session.install()
        sys.argv = [asked.script, *asked.args]
        if not asked.module:
            sys.path.insert(0, os.path.dirname(os.path.abspath(asked.script)))
        with session.running():
            run = runpy.run_module if asked.module else runpy.run_path
            run(asked.script, run_name="__main__")
        session.save(asked.out)
    except CaptureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    result = session.result()
    counts = {}
    for event in result["events"]:
        counts[event[0]] = counts.get(event[0], 0) + 1
    print(f"{asked.out}: {counts.get('kernel', 0)} ops, {counts.get('collective', 0)} collectives")
    for line, what in result["assumed"].items():
        print(f"assumed: {what} ({line})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
