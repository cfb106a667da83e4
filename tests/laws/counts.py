"""Parameters, FLOPs and shards of a model file by the
formulas of the papers, independent of the program."""
import functools
import math


def blocks_of(model):
    """Returns (kinds of blocks, the kind of each layer)."""
    extras = model.get("extras", {})
    kinds = [{"mixer": extras.get("mixer", "attention"), "attention": model["attention"], "ffn": model["ffn_hidden"],
              "recurrent": extras.get("recurrent", model.get("recurrent")), "experts": model.get("experts"),
              "planned": extras.get("planned", [])}]
    described = model.get("blocks", {})
    for other in described.get("others", []):
        kinds.append({"mixer": other.get("mixer", "attention"), "attention": other.get("attention", model["attention"]),
                      "ffn": other["ffn_hidden"], "recurrent": other.get("recurrent"), "experts": other.get("experts"),
                      "planned": other.get("planned", [])})
    return kinds, described.get("of_layers") or [0] * model["layers"]


def norm_width(model):
    has_bias = model["norm"] == "layer_norm" and model.get("extras", {}).get("norm_bias", True)
    return model["hidden"] * (2 if has_bias else 1)


def matrices(model):
    return 3 if model["mlp"] in ("swiglu", "geglu", "clamped_swiglu", "situ") else 2


class Mixer:
    """A block's mixer: matrix weights sharded by tp and replicated,
    other parameters likewise, and FLOPs of the core."""

    def __init__(self, model, block):
        self.cut = self.whole = self.cut_other = self.whole_other = 0
        self.model, self.block = model, block
        {"attention": self._attention, "mamba2": self._recurrence, "delta_net": self._recurrence}.get(block["mixer"],
                                                                                                      lambda: None)()
        for op in block["planned"]:
            self._planned(op)

    def _planned(self, op):
        """Adds a planned op: a matrix, and other parameters, which only row sharding divides."""
        cut = op["sharding"] in ("rows", "columns")
        matrix = op.get("width", 0) * op["columns"] if op["kind"] == "linear" else 0
        self.cut, self.whole = self.cut + (matrix if cut else 0), self.whole + (0 if cut else matrix)
        by_rows, others = op["sharding"] == "rows", op.get("parameters", 0)
        self.cut_other += others if by_rows else 0
        self.whole_other += 0 if by_rows else others

    def _attention(self):
        hidden, attention = self.model["hidden"], self.block["attention"]
        heads, kv, dim = attention["heads"], attention["kv_heads"], attention["head_dim"]
        extras, bias = attention.get("extras", {}), self.model["linear_bias"]
        latent = extras.get("latent")
        if latent:
            rank, q_rank = latent["kv_rank"], latent["q_rank"] or 0
            width = latent["nope_dim"] + latent["rope_dim"]
            self.whole = hidden * (q_rank + rank + latent["rope_dim"])
            self.cut = (q_rank or hidden) * heads * width + heads * latent["value_dim"] * hidden
            self.cut += rank * heads * (latent["nope_dim"] + latent["value_dim"])
            self.whole_other = rank + q_rank
            if bias or extras.get("qkv_bias"):
                self.whole_other += q_rank + rank + latent["rope_dim"]
            self.core_width = heads * (width + latent["value_dim"])
        else:
            gates = 1 if extras.get("output_gate") else 0
            wide = extras.get("value_dim") or dim
            source = extras.get("key_values", "projected")
            keys_and_values = {"projected": kv * (dim + wide), "same_matrix": kv * dim, "earlier_layer": 0}[source]
            self.cut = hidden * (heads * (dim * (1 + gates) + wide) + keys_and_values)
            self.cut_other = heads * dim + keys_and_values if bias or extras.get("qkv_bias") else 0
            self.cut_other += heads if extras.get("score", {}).get("sinks") else 0
            kind = extras.get("qk_norm", "none")
            normed = 1 if source == "earlier_layer" else 2
            self.whole_other = normed * dim if kind == "head" else 0
            self.cut_other += (heads + kv) * dim if kind in ("width", "each_head") else 0
            self.core_width = heads * (dim + wide)
        self.whole_other += hidden if bias or extras.get("output_bias") else 0

    def _recurrence(self):
        hidden, shape = self.model["hidden"], self.block["recurrent"]
        inner, keys = shape["heads"] * shape["value_dim"], shape["key_heads"] * shape["key_dim"]
        convolved = inner + 2 * keys
        is_mamba = self.block["mixer"] == "mamba2"
        by_channel = shape.get("channel_decay", False)
        gates = shape["heads"] if is_mamba or by_channel else 2 * shape["heads"]
        decays = shape["heads"] * (shape["key_dim"] if by_channel else 1)
        gate = inner if shape.get("wide_gate", True) else 0
        self.cut = hidden * (gate + convolved + gates) + inner * hidden
        self.cut_other = convolved * (shape["convolution"] + (1 if shape.get("convolution_bias") else 0)) + \
            (3 * shape["heads"] + inner if is_mamba else shape["heads"] + decays + shape["value_dim"])

    def core(self, seq):
        if self.block["mixer"] == "attention":
            return 2 * pairs(self.block["attention"].get("extras", {}), seq) * self.core_width
        if self.block["mixer"] in ("mamba2", "delta_net"):
            shape = self.block["recurrent"]
            return 4 * shape["heads"] * shape["key_dim"] * shape["value_dim"] * seq
        return self._planned_pairs(seq) if self.block["mixer"] == "planned" else 0

    def indexer(self, seq):
        """FLOPs of the scores that planned ops next to a mixer compute."""
        return 0 if self.block["mixer"] == "planned" else self._planned_pairs(seq)

    def _planned_pairs(self, seq):
        return sum(2 * op["heads"] * (op["key_dim"] + op.get("value_dim", 0)) * seq * seq * seen_keys(
            seq, op.get("window", 0), op.get("stride", 0), op.get("most", 0)) / (seq * (seq + 1) / 2)
                   for op in self.block["planned"] if op["kind"] == "pairs")


@functools.lru_cache(maxsize=None)
def seen_keys(seq, window, stride, most):
    """Keys that all queries of a sequence attend to: the last
    `window` ones, and earlier ones in steps of `stride`."""
    near = sum(min(n, window) for n in range(1, seq + 1)) if window else 0
    far = 0
    for keys in range(seq // stride + 1) if stride else ():
        queries = min(seq + 1, (keys + 1) * stride) - keys * stride
        far += queries * (min(keys, most) if most else keys)
    return near + far


def part_parameters(part):
    def ops(listed):
        return sum((op.get("width", 0) * op["columns"] if op["kind"] == "linear" else 0) + op.get("parameters", 0)
                   for op in listed)
    return part.get("layers", 0) * ops(part.get("layer_ops", [])) + ops(part.get("ops", []))


def part_flops(part, seq):
    """Forward FLOPs of an encoder for one sequence.
    All positions of an item attend to each other."""
    tokens = part["patches"] * part["items"] if part.get("patches") else seq

    def ops(listed):
        flops = 0
        for op in listed:
            if op["kind"] == "linear":
                flops += 2 * math.ceil(tokens / max(1, op.get("stride", 0))) * op["width"] * op["columns"]
            elif op["kind"] == "pairs":
                flops += 2 * op["heads"] * (op["key_dim"] + op.get("value_dim", 0)) * tokens * part["patches"]
        return flops
    return part.get("layers", 0) * ops(part.get("layer_ops", [])) + ops(part.get("ops", []))


def parts_of(model):
    return model.get("extras", {}).get("parts", [])


def pairs(extras, seq):
    """Pairs of positions: the square of the sequence, times
    the share of a causal core that a window or chunk keeps."""
    windows = [limit for limit in (extras.get("window"), extras.get("chosen")) if limit]
    reach, is_window = min(windows) if windows else extras.get("chunk"), bool(windows)
    if not reach or reach >= seq:
        return float(seq) * seq
    full, rest = divmod(seq, reach)
    kept = reach * (reach + 1) / 2 + (seq - reach) * reach if is_window else \
        full * reach * (reach + 1) / 2 + rest * (rest + 1) / 2
    return float(seq) * seq * kept / (seq * (seq + 1) / 2)


class Mlp:
    """A dense MLP or experts: weights `expert` of one expert,
    `cut` and `whole` of the rest; biases separately."""

    def __init__(self, model, block):
        hidden, width, experts = model["hidden"], block["ffn"], block["experts"]
        self.count = self.per_token = self.expert = self.expert_other = 0
        self.cut = self.whole = self.cut_other = self.whole_other = 0
        number = matrices(model)
        if not experts:
            if width:
                self.cut = number * hidden * width
                if model["linear_bias"] or model.get("extras", {}).get("mlp_bias"):
                    self.cut_other, self.whole_other = (number - 1) * width, hidden
            self.exists = bool(width)
            return
        extras = experts.get("extras", {})
        latent = extras.get("latent") or 0
        self.exists, self.count, self.per_token = True, experts["count"], experts["per_token"]
        self.expert = number * (latent or hidden) * width
        self.expert_other = (number - 1) * width + (latent or hidden) if extras.get("bias") else 0
        self.cut = number * hidden * extras.get("shared_ffn", 0)
        self.whole = hidden * self.count + (hidden if extras.get("shared_gate") else 0) + 2 * hidden * latent
        self.whole_other = self.count if extras.get("router", {}).get("bias") else 0

    def passed(self):
        """Weights with which a token is multiplied."""
        return self.cut + self.whole + self.expert * self.per_token

    def all(self):
        experts = self.count * (self.expert + self.expert_other)
        return self.cut + self.whole + self.cut_other + self.whole_other + experts


def norms_of(model, block):
    branches = (block["mixer"] != "none") + Mlp(model, block).exists
    place = model.get("extras", {}).get("norm_place", "before")
    return {"around": 2 * branches, "one_parallel": 1}.get(place, branches) * norm_width(model)


def positions_of(model):
    if model["attention"]["position"] != "learned":
        return 0
    return max(model.get("extras", {}).get("positions", 0), model["seq"]) * model["hidden"]


def parameters(model):
    """Returns (all parameters, active parameters)."""
    kinds, layers = blocks_of(model)
    tables = 1 if model["tied_embedding"] else 2
    total = tables * model["vocab"] * model["hidden"] + norm_width(model) + positions_of(model)
    total += model["vocab"] if model.get("extras", {}).get("head_bias") else 0
    total += norm_width(model) if model.get("embedding_norm") else 0
    total += sum(part_parameters(part) for part in parts_of(model))
    idle = 0
    for kind in layers:
        mixer, mlp = Mixer(model, kinds[kind]), Mlp(model, kinds[kind])
        total += mixer.cut + mixer.whole + mixer.cut_other + mixer.whole_other + mlp.all() + norms_of(model,
                                                                                                      kinds[kind])
        idle += (mlp.count - mlp.per_token) * (mlp.expert + mlp.expert_other)
    return total, total - idle


def block_flops(model, block):
    """Forward FLOPs of a block for one sequence."""
    mixer, seq = Mixer(model, block), model["seq"]
    weights = mixer.cut + mixer.whole + Mlp(model, block).passed()
    return 2 * seq * weights + mixer.core(seq) + mixer.indexer(seq)


def step_flops(model, batch):
    kinds, layers = blocks_of(model)
    each = [block_flops(model, kind) for kind in kinds]
    parts = sum(part_flops(part, model["seq"]) for part in parts_of(model))
    head = 2 * model["seq"] * model["hidden"] * model["vocab"]
    return 3 * batch * (sum(each[kind] for kind in layers) + head + parts)


def adapter_flops(model, batch):
    """FLOPs of training adapters of rank 0: no weight has a gradient."""
    kinds, layers = blocks_of(model)
    products = [2 * model["seq"] * (mixer.cut + mixer.whole + Mlp(model, kind).passed())
                for kind in kinds for mixer in [Mixer(model, kind)]]
    head = 2 * model["seq"] * model["hidden"] * model["vocab"]
    return step_flops(model, batch) - batch * (sum(products[kind] for kind in layers) + head)


def recomputed_flops(model, plan, stops_early):
    """FLOPs of full recompute, or of recomputing the first blocks of each chunk. `stops_early`: without the last GEMM
    of a dense block, whose result nothing saves."""
    kinds, layers = blocks_of(model)
    last = 2 * model["seq"] * model["hidden"] if stops_early else 0
    each = [block_flops(model, kind) - last * kind["ffn"] for kind in kinds]
    again, first = 0, 0
    for count in plan["stage_layers"]:
        some = {"full": count, "blocks": min(count, plan["recompute_blocks"]), "none": 0}[plan["recompute"]]
        again += sum(each[kind] for kind in layers[first:first + some])
        first += count
    return plan["global_batch"] * again


def selected_flops(model, plan, modules):
    """FLOPs of selective recompute of these modules. Norms and activations count as zero."""
    kinds, layers = blocks_of(model)
    again = 0
    for block in (kinds[kind] for kind in layers):
        mlp, seq = Mlp(model, block), model["seq"]
        if "core_attn" in modules and block["mixer"] in ("attention", "planned"):
            again += Mixer(model, block).core(seq)
        if ("moe" if mlp.count else "mlp") in modules:
            again += 2 * seq * mlp.passed()
        elif mlp.count and "shared_experts" in modules:
            again += 2 * seq * mlp.cut
    return plan["global_batch"] * again


def shard_parameters(model, plan, stage):
    """Returns (dense, expert) parameters of a rank of a
    stage, sharded by tensor and expert parallelism."""
    kinds, layers = blocks_of(model)
    tp, pp, ep = plan["tp"], plan["pp"], plan["ep"]
    etp = plan["etp"] or tp
    dense = expert = 0.0
    first = 0
    for chunk, count in enumerate(plan["stage_layers"]):
        for kind in layers[first:first + count] if chunk % pp == stage else []:
            mixer, mlp = Mixer(model, kinds[kind]), Mlp(model, kinds[kind])
            dense += (mixer.cut + mixer.cut_other + mlp.cut + mlp.cut_other) / tp + mixer.whole + mixer.whole_other
            dense += mlp.whole + mlp.whole_other + norms_of(model, kinds[kind])
            expert += mlp.count * (mlp.expert + mlp.expert_other) / (ep * etp)
        first += count
    multiple = model.get("vocab_multiple", 128) * tp
    table = math.ceil(model["vocab"] / multiple) * multiple / tp
    if stage == 0:
        dense += table * model["hidden"] + positions_of(model) + (norm_width(model)
                                                                  if model.get("embedding_norm") else 0)
        dense += sum(part_parameters(part) for part in parts_of(model))
    if stage == pp - 1:
        dense += norm_width(model) + (0 if model["tied_embedding"] and pp == 1 else table * model["hidden"])
        dense += table if model.get("extras", {}).get("head_bias") else 0
    return dense, expert
