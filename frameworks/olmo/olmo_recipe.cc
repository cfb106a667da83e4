// Imports configurations of OLMo-core, whose scripts tpsim_recipes runs.
//
// OLMo-core trains over FSDP2 with torch.compile, as torchtitan does. Batches are stated in tokens.
//
// Sources: olmo_core/train/train_module/transformer, distributed/parallel, optim and float8 of
// fa6c501.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "frameworks/olmo/olmo_values.h"

namespace tpsim {
namespace {

class OlmoRecipe {
 public:
  OlmoRecipe(const ResolvedRecipe& recipe, const LaunchFile& file, const ImportInputs& inputs)
      : recipe_(recipe), file_(file), inputs_(inputs), values_(recipe, *inputs.left) {}

  Result<ImportedPlan> plan() {
    if (!values_.has_section("train_module") || !values_.has_section("model")) {
      return bad_input("has no sections model and train_module: tpsim cannot read it", "",
                       "name a script that trains a transformer");
    }
    result_.stack = "olmo-core";
    TPSIM_TRY_STATUS(take_model());
    TPSIM_TRY_STATUS(take_size());
    take_layout();
    TPSIM_TRY_STATUS(take_data_parallel());
    take_experts();
    take_batch();
    TPSIM_TRY_STATUS(open_.status());
    TPSIM_TRY_STATUS(take_pipeline());
    take_olmo_software(values_, result_);
    TPSIM_TRY_STATUS(settle());
    TPSIM_TRY_STATUS(validate(result_.plan, result_.model));
    return std::move(result_);
  }

 private:
  static std::string in_module(std::string_view key) { return fmt::format("train_module.{}", key); }
  void set_part(StackPart part, std::string_view word) {
    result_.parts[part] = parse_value(row_of(part), word).value();
  }
  void note(std::string text) { result_.notes.push_back(std::move(text)); }

  Status take_model() {
    const std::int64_t longest = values_.number(in_module("max_sequence_length"));
    seq_ = values_.number("dataset.sequence_length", longest);
    if (seq_ < 1) return bad_input("train_module.max_sequence_length is not stated");
    TPSIM_TRY(OlmoModel read, olmo_model(values_, seq_));
    result_.parts = std::move(read.parts);
    result_.notes = std::move(read.notes);
    result_.model = inputs_.model ? *inputs_.model : read.model;
    if (inputs_.model && !inputs_.keeps_seq) result_.model.seq = seq_;
    if (values_.flag("dataset.generate_doc_lengths")) {
      note(
          "attention is predicted over whole sequences, not within documents: the step is an "
          "upper bound");
    }
    return Ok{};
  }

  Status take_size() {
    constexpr std::int64_t kUsualNode = 8;
    const std::int64_t nodes =
        recipe_.is_default("launch.num_nodes") ? 0 : values_.number("launch.num_nodes");
    const std::int64_t per_node = values_.number("launch.num_gpus", kUsualNode);
    gpus_ = inputs_.gpus > 0 ? inputs_.gpus : nodes * per_node;
    if (gpus_ < 1) open_.ask(kHowManyGpus);
    const bool is_whole = per_node > 0 && gpus_ > per_node && gpus_ % per_node == 0;
    nodes_ = is_whole ? gpus_ / per_node : 1;
    return Ok{};
  }

  // Reads the degrees of tensor, context and pipeline parallelism.
  void take_layout() {
    ParallelDegrees& degrees = result_.plan.degrees;
    degrees.tp = values_.number(in_module("tp_config.degree"), 1);
    degrees.cp = values_.number(in_module("cp_config.degree"), 1);
    degrees.pp = values_.number(in_module("pp_config.degree"), 1);
    result_.plan.sequence_parallel = degrees.tp > 1;
    if (values_.flag(in_module("tp_config.enable_async"))) {
      set_part(StackPart::kTpOverlap, "userbuffers");
    }
    if (degrees.cp < 2) return;
    if (values_.has_section(in_module("cp_config.uly"))) {
      set_part(StackPart::kCpCommType, "a2a");
    } else {
      const bool gathers = values_.text(in_module("cp_config.ring.load_balancer")) == "llama3" ||
                           values_.text(in_module("cp_config.load_balancer")) == "llama3";
      set_part(StackPart::kCpCommType, gathers ? "all_gather" : "p2p");
    }
  }

  // Reads the data parallelism. FSDP shards over data and context ranks. HSDP keeps a replica per
  // node unless the numbers of replicas or shards are stated.
  Status take_data_parallel() {
    Plan& plan = result_.plan;
    const std::string kind = values_.text(in_module("dp_config.name"));
    const std::int64_t others = plan.degrees.tp * plan.degrees.cp * plan.degrees.pp;
    if (gpus_ < 1) return Ok{};  // an open question
    if (others < 1 || gpus_ % others != 0) {
      return bad_input(fmt::format("tensor {} x context {} x pipeline {} do not divide {} GPUs",
                                   plan.degrees.tp, plan.degrees.cp, plan.degrees.pp, gpus_),
                       "", "add --gpus N with a multiple");
    }
    plan.degrees.dp = gpus_ / others;
    plan.zero = 0;
    if (kind.empty() && gpus_ > 1) {
      return bad_input(fmt::format("has no train_module.dp_config for {} GPUs", gpus_), "",
                       "OLMo-core needs one for more than one GPU");
    }
    if (!matches_any(kind, "fsdp hsdp")) return Ok{};
    const std::string wrapping = values_.text(in_module("dp_config.wrapping_strategy"));
    if (wrapping == "fine_grained") {
      note("wrapping_strategy fine_grained: predicted with one gather per block");
    }
    std::int64_t shards = plan.degrees.dp;
    if (kind == "hsdp") {
      TPSIM_TRY(shards, shards_of_hsdp());
    }
    const std::int64_t group = shards * plan.degrees.cp * plan.degrees.tp;
    if (shards * plan.degrees.cp == 1) return Ok{};  // replicas only
    plan.zero = plan.degrees.pp > 1 ? 2 : 3;
    if (shards == plan.degrees.dp) return Ok{};
    const bool is_node = nodes_ > 1 && group == gpus_ / nodes_;
    result_.parts[StackPart::kShardGroup] = is_node ? kShardOverNode : group;
    return Ok{};
  }

  Result<std::int64_t> shards_of_hsdp() {
    const std::int64_t dp = result_.plan.degrees.dp;
    const std::string copies = values_.text(in_module("dp_config.num_replicas"));
    std::int64_t shards = values_.number(in_module("dp_config.shard_degree"));
    if (copies == "0") {
      return bad_input(
          "train_module.dp_config.num_replicas is 0, which the script computed from too few GPUs",
          "", "add --gpus N, so that the script runs with that number");
    }
    const std::int64_t replicas =
        copies.empty() ? nodes_ : values_.number(in_module("dp_config.num_replicas"));
    if (shards == 0) shards = replicas > 0 && dp % replicas == 0 ? dp / replicas : 0;
    if (shards < 1 || dp % shards != 0) {
      return bad_input(fmt::format("num_replicas {} and shard_degree {} do not divide the {} "
                                   "data-parallel ranks",
                                   replicas, shards, dp),
                       "", "add --gpus N with a multiple");
    }
    return shards;
  }

  void take_experts() {
    const std::string degree = values_.text(in_module("ep_config.degree"));
    if (degree.empty() || !has_experts(result_.model)) return;
    Plan& plan = result_.plan;
    const auto group = result_.parts.find(StackPart::kShardGroup);
    const bool is_part = group != result_.parts.end() && group->second > 0;
    const bool is_node = group != result_.parts.end() && group->second == kShardOverNode;
    const std::int64_t shards = is_node   ? gpus_ / nodes_
                                : is_part ? group->second
                                          : plan.degrees.dp;
    plan.degrees.ep = degree == "-1" ? shards : values_.number(in_module("ep_config.degree"), 1);
  }

  // Converts tokens to sequences.
  void take_batch() {
    Plan& plan = result_.plan;
    const std::int64_t tokens = values_.number(in_module("rank_microbatch_size"));
    plan.micro_batch = tokens >= seq_ ? tokens / seq_ : inputs_.micro_batch;
    const std::int64_t step = values_.number("data_loader.global_batch_size");
    plan.global_batch = step >= seq_ ? step / seq_ : inputs_.global_batch;
    if (plan.micro_batch < 1) open_.ask({"rank_microbatch_size is not stated", "--micro-batch N"});
    if (plan.global_batch < 1) {
      open_.ask({"data_loader.global_batch_size is not stated", "--global-batch N"});
    }
  }

  Status take_pipeline() {
    Plan& plan = result_.plan;
    plan.stage_layers = {result_.model.layers};
    if (plan.degrees.pp < 2) return Ok{};
    const std::string key = in_module("pp_config.schedule");
    const std::string schedule = values_.text(key);
    if (matches_any(schedule, "single_1F1B 1F1B")) {
      plan.schedule = ScheduleKind::kOneFOneB;
    } else if (matches_any(schedule, "gpipe GPipe")) {
      plan.schedule = ScheduleKind::kGpipe;
    } else if (matches_any(schedule, "interleaved_1F1B Interleaved1F1B")) {
      plan.schedule = ScheduleKind::kInterleaved;
    } else {
      values_.refuse(key, "tpsim models 1F1B, interleaved 1F1B and GPipe");
    }
    if (values_.text(in_module("pp_config.style")) == "v") {
      values_.refuse(in_module("pp_config.style"), "stages in the order of a V are not modelled");
    }
    plan.virtual_stages = plan.schedule == ScheduleKind::kInterleaved ? 2 : 1;
    plan.stage_layers = stage_layers();
    const auto chunks = static_cast<std::int64_t>(plan.stage_layers.size());
    if (chunks % plan.degrees.pp != 0) {
      return bad_input(fmt::format("split_points make {} stages, which {} ranks do not divide",
                                   chunks, plan.degrees.pp));
    }
    plan.virtual_stages = chunks / plan.degrees.pp;
    return Ok{};
  }

  // Returns the layers of every stage. Without stated split points the first stage gets no more
  // than the others, and remaining layers go to the stages after it.
  std::vector<std::int64_t> stage_layers() {
    const std::int64_t layers = result_.model.layers;
    const std::vector<std::string> points = values_.list(in_module("pp_config.split_points"));
    std::vector<std::int64_t> stages;
    if (!points.empty()) {
      std::int64_t before = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const std::int64_t point =
            values_.number(in_module(fmt::format("pp_config.split_points.{}", i)));
        stages.push_back(point - before);
        before = point;
      }
      stages.push_back(layers - before);
      return stages;
    }
    const std::int64_t chunks = chunk_count(result_.plan);
    std::int64_t left = layers % chunks;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const bool is_middle = chunk > 0 && chunk + 1 < chunks && left > 0;
      stages.push_back(layers / chunks + (is_middle ? 1 : 0));
      if (is_middle) --left;
    }
    stages.back() += left;
    return stages;
  }

  // Handles the settings that have not been read.
  Status settle() {
    FlatReader in(values_.unread());
    std::erase_if(in.left(), [&](const FlatSetting& one) {
      const std::string_view key = one.key;
      const bool is_constant = key.starts_with("model.") &&
                               ignores(fact_table("olmo-modules"), key.substr(key.rfind('.') + 1));
      if (is_constant) add_outside(one.key, result_.outside);
      return is_constant;
    });
    return settle_left(in, file_, fact_table("olmo").left, result_.outside, *inputs_.left);
  }

  const ResolvedRecipe& recipe_;
  const LaunchFile& file_;
  const ImportInputs& inputs_;
  OlmoValues values_;
  OpenQuestions open_;
  ImportedPlan result_;
  std::int64_t seq_ = 0, gpus_ = 0, nodes_ = 1;
};

}  // namespace

Result<ImportedPlan> import_olmo_recipe(const ResolvedRecipe& recipe, const LaunchFile& file,
                                        const ImportInputs& inputs) {
  return OlmoRecipe(recipe, file, inputs).plan();
}

}  // namespace tpsim
