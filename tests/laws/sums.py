"""Numbers of a report that follow from others: sums,
rates, parameter counts, FLOPs, ZeRO shards."""
import json

import counts
from base import Skip, close, law
from program import Refused

SECOND_DIGITS = 1e-6


def has_mtp(model):
    return bool(model.get("extras", {}).get("prediction_layers"))


def peak_flops(case, report):
    """Returns the peak of 16-bit GEMMs in FLOP/s; None for 8-bit or 4-bit linear layers."""
    device = case.tpsim.show("profile", report["profile"]["name"])["device"]
    number, unit = device["matmul_peak"].split(" ")
    if report["precision"] != "none" or report["dtype"] not in ("bf16", "fp16"):
        return None
    return float(number) * {"TFLOP/s": 1e12, "PFLOP/s": 1e15, "GFLOP/s": 1e9}[unit]


@law("prediction", 2)
def sums(case):
    """Terms add up to the step, categories to the memory,
    rates follow from the step, and no term is negative."""
    report, _ = case.tpsim.simulate(case.options)
    predicted, command = report["predicted"], ("simulate", {**case.options, "--allow-oom": None, "--json": None})
    step, terms = predicted["step_s"], predicted["breakdown_s"]
    if not close(sum(terms.values()), step, SECOND_DIGITS):
        yield case.violation("terms do not add up to the step", f"{sum(terms.values())} and {step}", command)
    for name, time_s in terms.items():
        if time_s < 0:
            yield case.violation(f"the term {name} is negative", f"{time_s} s", command)
    for stage in predicted["memory_gib"]["by_stage"]:
        total = sum(value for name, value in stage.items() if name not in ("stage", "total"))
        if not close(total, stage["total"], SECOND_DIGITS) or any(v < 0 for v in stage.values()):
            yield case.violation("categories do not add up to a stage's memory", f"{stage}", command)
    most = max(stage["total"] for stage in predicted["memory_gib"]["by_stage"])
    if not close(most, predicted["memory_gib"]["peak"], SECOND_DIGITS):
        yield case.violation("the peak is not that of the fullest stage", f"{most}", command)
    seq = int(case.options.get("--seq", case.model["seq"]))
    if not close(predicted["tokens_per_s"], report["global_batch"] * seq / step, SECOND_DIGITS):
        yield case.violation("tokens/s is not tokens over the step", predicted["tokens_per_s"], command)
    if report["gpus"] != report["tp"] * report["pp"] * report["dp"] * report["cp"]:
        yield case.violation("GPUs are not the product of the degrees", report["gpus"], command)
    peak = peak_flops(case, report)
    if peak and not close(predicted["mfu"], predicted["model_tflops_per_gpu"] * 1e12 / peak, SECOND_DIGITS):
        yield case.violation("MFU is not model FLOPs over the peak", predicted["mfu"], command)
    if predicted["hw_tflops_per_gpu"] < predicted["model_tflops_per_gpu"] * (1 - SECOND_DIGITS):
        yield case.violation("hardware FLOPs are fewer than the model's", predicted["hw_tflops_per_gpu"], command)
    if not predicted["step_s_low"] <= step <= predicted["step_s_high"] or predicted["step_s_low"] < 0:
        yield case.violation("the interval does not hold the step",
                             f"{predicted['step_s_low']} to {predicted['step_s_high']}", command)
    if not close(sum(predicted["sources"].values()), 1, 1e-6):
        yield case.violation("shares of sources do not add up to one", predicted["sources"], command)


@law("prediction", 0.5)
def live_memory(case):
    """The contents of the memory at the peak add up to the memory of each stage."""
    asked = {**case.options, "--memory": None}
    report, _ = case.tpsim.call("explain", asked)
    stages = report["plan"]["predicted"]["memory_gib"]["by_stage"]
    for stage, peak in zip(stages, report["stages"]):
        gib = sum(live["bytes"] for live in peak["live"]) / 2**30
        if not close(gib, stage["total"], SECOND_DIGITS):
            yield case.violation("the contents of the memory do not add up", f"{gib} and {stage['total']} GiB",
                                 ("explain", {**asked, "--json": None}))


def recomputed_modules(case, report, saved):
    """Returns the modules of selective recompute; empty without it."""
    if report["recompute"] != "selective":
        return []
    own = case.tpsim.show("stack", report["stack"])["parts"]
    modules = {**own, **saved.get("parts", {})}["recompute_modules"].split(",")
    # The reference model keeps what the backward of flash attention needs.
    keeps_core = report["stack"] == "reference" and report["attention"] == "flash"
    return [module for module in modules if not (keeps_core and module == "core_attn")]


@law("prediction")
def flops(case):
    """FLOPs of the model and of recompute equal the formulas of the papers."""
    yield from flops_faults(case, case.options)
    modules = case.rng.choice(["core_attn", "mlp", "moe", "core_attn,mlp", "core_attn,moe", "shared_experts", "layernorm"])
    selective = {**case.options, "--recompute": "selective", "--recompute-modules": modules}
    try:
        case.tpsim.simulate(selective)
    except Refused:
        return
    case.checks += 1
    yield from flops_faults(case, selective)


def flops_faults(case, options):
    report, file = case.tpsim.simulate(options)
    model, predicted = json.loads(file)["model"], report["predicted"]
    if has_mtp(model):
        raise Skip("MTP's layers are outside the formulas")
    command = "simulate", {**options, "--allow-oom": None, "--json": None}
    gpu_seconds = predicted["step_s"] * report["gpus"]
    mine = counts.step_flops(model, report["global_batch"])
    got = predicted["model_tflops_per_gpu"] * 1e12 * gpu_seconds
    if options.get("--finetune", "full") != "full":
        least = counts.adapter_flops(model, report["global_batch"])
        if not least * (1 - 1e-6) <= got <= mine * (1 + 1e-6):
            yield case.violation("FLOPs with adapters are outside the formulas", f"{got:.8g}, {least:.8g} to {mine:.8g}",
                                 command)
        return  # adapters are recomputed too
    if not close(got, mine, 1e-6):
        yield case.violation("model FLOPs are others than the formula's", f"{got:.8g} and {mine:.8g}", command)
    modules = recomputed_modules(case, report, json.loads(file))
    if report["recompute"] == "ops" or "mla_up_proj" in modules:
        return  # ops depend on positions, and latents on their shapes
    stops_early = case.tpsim.show("stack", report["stack"]).get("checkpoint_stops_early", False) and not model.get("hidden_dropout")
    if stops_early and report["recompute"] != "selective" and any(kind["experts"] for kind in counts.blocks_of(model)[0]):
        return  # whether the last GEMM is repeated depends on how results of experts are weighted
    is_selective = report["recompute"] == "selective"
    more = counts.selected_flops(model, report, modules) if is_selective else counts.recomputed_flops(model, report, stops_early)
    got = (predicted["hw_tflops_per_gpu"] - predicted["model_tflops_per_gpu"]) * 1e12 * gpu_seconds
    if abs(got - more) > 1e-6 * mine:
        yield case.violation(f"FLOPs of {report['recompute']} recompute are others than the formula's",
                             f"{got:.8g} and {more:.8g}", command)


@law("nothing", 0.5)
def parameters(case):
    """Parameters and active parameters equal the
    formulas of the papers, also for changed shapes."""
    name = case.catalogue.files["model"][case.number % len(case.catalogue.files["model"])]
    model, changes = case.tpsim.show("model", name), []
    if has_mtp(model):
        raise Skip("MTP's layers are outside the formulas")
    if case.number >= len(case.catalogue.files["model"]) or case.rng.random() < 0.5:
        options = [(["vocab"], case.rng.choice([1000, 32000, 50257])),
                   (["tied_embedding"], not model["tied_embedding"]),
                   (["linear_bias"], not model["linear_bias"]), (["norm"], case.rng.choice(["layer_norm", "rms_norm"]))]
        if "blocks" not in model:
            options.append((["layers"], case.rng.choice([1, 3, 8])))
            if not model.get("experts"):
                options += [(["ffn_hidden"], case.rng.choice([1024, 3072])),
                            (["mlp"], case.rng.choice(["gelu", "swiglu", "relu", "relu_squared", "geglu"]))]
        changes = case.rng.sample(options, case.rng.choice([1, 2]))
        for place, value in changes:
            model[place[0]] = value
    options = {"--model": case.changed("model", name, *changes) if changes else name, "--cluster": "dgx-h100",
               "--ignore-stack-limits": None,
               "--attention-dropout": 0, "--seq": case.rng.choice([model["seq"], 1024, 32768])}
    try:
        report, file = case.tpsim.simulate(options)
    except Refused as error:
        if error.is_bug:
            yield case.violation(f"the program fails: {error.message}", error, ("simulate", options))
            return
        raise Skip(error.message) from error
    mine = counts.parameters(json.loads(file)["model"])
    got = report["parameters"], report["active_parameters"]
    if got != mine:
        table = model.get("extras", {}).get("positions", 0)
        what = "leave out rows of a sequence beyond the learned positions" if 0 < table < int(options["--seq"]) \
            else "are others than the formula's"
        yield case.violation(f"parameters {what}", f"{name} {changes}: {got} and {mine}",
                             ("simulate", {**options, "--json": None}))


BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@law("prediction")
def zero_memory(case):
    """Optimizer state and weights of a stage equal the closed form of the ZeRO stage."""
    report, file = case.tpsim.simulate(case.options)
    saved = json.loads(file)
    model = saved["model"]
    stack = case.tpsim.show("stack", report["stack"])["parts"]
    parts = {**stack, **saved.get("parts", {})}
    trains_all = case.options.get("--finetune", "full") == "full"
    if not trains_all or report["precision"] != "none" or parts.get("shard_group", "all") != "all" or report["offload"] != "none" or \
            has_mtp(model) or parts.get("master_weights", "copy") in ("autocast", "none") or \
            parts.get("optimizer_kind", "adamw") != "adamw":
        raise Skip("no closed form here")
    ranks = report["dp"] * report["cp"]
    etp = report["etp"] or report["tp"]
    expert_ranks = report["tp"] * ranks // (etp * report["ep"])
    moments = BYTES[parts.get("optimizer_dtype", "fp32")]
    state_bytes = 2 * moments + (4 if report["dtype"] != "fp32" else 0)
    for stage in report["predicted"]["memory_gib"]["by_stage"]:
        dense, expert = counts.shard_parameters(model, report, stage["stage"])

        def sharded(at):
            return dense / (ranks if report["zero"] >= at else 1) + expert / (expert_ranks
                                                                              if report["zero"] >= at else 1)

        for what, want in (("optimizer", sharded(1) * state_bytes), ("weights", sharded(3) * BYTES[report["dtype"]])):
            got = stage[what] * 2**30
            if what == "weights" and report["zero"] == 3:  # gathered units exist next to the shards
                                                           # at the peak
                kept = 0 if parts.get("master_weights") == "cast" and report["dtype"] != "fp32" else want
                want = min(max(got, kept), want + (dense + expert) * BYTES[report["dtype"]])
            if abs(got - want) > 2e-3 * want + 2e6 and abs(got - want) > 0.02 * (dense + expert):
                yield case.violation(f"{what} of ZeRO {report['zero']}, {report['dtype']}: not the closed form",
                                     f"stage {stage['stage']}: {got / 2**30:.5f} GiB, the formula {want / 2**30:.5f}",
                                     ("simulate", {**case.options, "--allow-oom": None}))


@law("prediction", 0.3)
def timeline(case):
    """The timeline ends with the step. Every micro-batch
    passes every chunk forward and backward, in order."""
    report, _ = case.tpsim.simulate(case.options)
    batches, chunks = report["global_batch"] // (report["dp"] * report["micro_batch"]), len(report["stage_layers"])
    if batches * chunks > 2000:
        raise Skip("a long timeline")
    options = {**case.options, "--trace": "-", "--allow-oom": None, "--quiet": None}
    code, out, error = case.tpsim.command("simulate", *[word for name, value in options.items()
                                                        for word in ([name] if value is None else [name, value])])
    if code != 0:
        yield case.violation("no timeline of a plan that is predicted", error, ("simulate", options))
        return
    spans = [event for event in json.loads(out)["traceEvents"] if event["ph"] == "X"]
    if max(span["ts"] + span["dur"] for span in spans) * 1e-6 > report["predicted"]["step_s"] * (1 + 1e-9):
        yield case.violation("the timeline ends after the step", "", ("simulate", options))
    tasks = {}
    for span in spans:
        if span["cat"] in ("forward", "backward"):
            tasks.setdefault((span["cat"], span["args"]["chunk"], span["args"]["micro_batch"]), []).append(span)
    if len(tasks) != 2 * batches * chunks or any(len(spans) != 1 for spans in tasks.values()):
        yield case.violation("not every micro-batch passes every chunk once", len(tasks), ("simulate", options))
        return
    for batch in range(batches):
        path = [tasks["forward", c, batch][0] for c in range(chunks)] + \
               [tasks["backward", c, batch][0] for c in reversed(range(chunks))]
        for first, then in zip(path, path[1:]):
            if then["ts"] < first["ts"] + first["dur"] - 1e-3:
                yield case.violation("a task starts before what it waits for ends",
                                     f"micro-batch {batch}: {first['name']}, {then['name']}",
                                     ("simulate", options))
                return
