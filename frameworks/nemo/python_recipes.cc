// What NeMo 2's recipes and Megatron-Bridge's say, in the one's or the other's words. Rules: NeMo's
// collections/llm/recipes, Megatron-Bridge's recipes/common.py and training/comm_overlap.py.
#include "frameworks/nemo/python_recipes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {
namespace {

// Where NeMo 2 keeps what Megatron-Bridge has in sections; the first that fits counts. Its
// functions that make a trainer take shorter names.
struct Place {
  std::string_view nemo, bridge;
};
constexpr Place kPlaces[] = {
    {"trainer.strategy.ddp.", "ddp."},
    {"trainer.strategy.use_tp_pp_dp_mapping", "dist.use_tp_pp_dp_mapping"},
    {"trainer.strategy.", "model."},
    {"trainer.plugins.0.", "mixed_precision."},
    {"trainer.plugins", "mixed_precision"},
    {"trainer.precision", "mixed_precision.precision"},
    {"trainer.tensor_parallelism", "model.tensor_model_parallel_size"},
    {"trainer.pipeline_parallelism_type", "model.pipeline_dtype"},
    {"trainer.pipeline_parallelism", "model.pipeline_model_parallel_size"},
    {"trainer.virtual_pipeline_parallelism", "model.virtual_pipeline_model_parallel_size"},
    {"trainer.context_parallelism", "model.context_parallel_size"},
    {"trainer.expert_parallelism", "model.expert_model_parallel_size"},
    {"trainer.sequence_parallelism", "model.sequence_parallel"},
    {"trainer.num_gpus_per_node", "trainer.devices"},
    {"num_gpus_per_node", "trainer.devices"},
    {"num_nodes", "trainer.num_nodes"},
    {"model.config.", "model."},
    {"model.0.", "model."},
    {"data.seq_length", "dataset.seq_length"},
    {"data.global_batch_size", "train.global_batch_size"},
    {"data.micro_batch_size", "train.micro_batch_size"},
    {"data.", "dataset."},
    {"dataset.sequence_length", "dataset.seq_length"},
    {"comm_overlap.overlap_grad_reduce", "ddp.overlap_grad_reduce"},
    {"comm_overlap.overlap_param_gather", "ddp.overlap_param_gather"},
    {"optim.config.use_distributed_optimizer", "ddp.use_distributed_optimizer"},
    {"optim.0.use_distributed_optimizer", "ddp.use_distributed_optimizer"},
    {"optimizer.use_distributed_optimizer", "ddp.use_distributed_optimizer"},
    {"optim.config.", "optimizer."},
};

// What a function of another file sets before its caller does.
struct Beginning {
  std::string_view key, made_by;
  std::vector<FlatSetting> settings;
};
const std::vector<Beginning>& beginnings() {
  static const std::vector<Beginning> all = {
      {"",
       "_pretrain_common",
       {{"train.global_batch_size", "32"},
        {"train.micro_batch_size", "2"},
        {"dataset.seq_length", "4096"},
        {"ddp.grad_reduce_in_fp32", "true"},
        {"ddp.overlap_grad_reduce", "true"},
        {"ddp.overlap_param_gather", "true"},
        {"ddp.use_distributed_optimizer", "true"},
        {"ddp.data_parallel_sharding_strategy", "optim_grads_params"},
        {"mixed_precision", "bf16_mixed"}}},
      {"",
       "_sft_common",
       {{"train.global_batch_size", "128"},
        {"train.micro_batch_size", "1"},
        {"dataset.seq_length", "2048"},
        {"ddp.grad_reduce_in_fp32", "true"},
        {"ddp.use_distributed_optimizer", "true"},
        {"mixed_precision", "bf16_mixed"}}},
      {"optim",
       "distributed_fused_adam_with_cosine_annealing",
       {{"ddp.use_distributed_optimizer", "true"}}},
      {"optimizer",
       "distributed_fused_adam_with_cosine_annealing",
       {{"ddp.use_distributed_optimizer", "true"}}},
      // Where replicas can overlap, a section of overlap makes them.
      {"comm_overlap",
       "CommOverlapConfig",
       {{"ddp.overlap_grad_reduce", "true"}, {"ddp.overlap_param_gather", "true"}}},
      {"comm_overlap",
       "MegatronCommOverlapCallback",
       {{"ddp.overlap_grad_reduce", "true"}, {"ddp.overlap_param_gather", "true"}}},
  };
  return all;
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

bool is_class(std::string_view name) {
  return !name.empty() && std::isupper(static_cast<unsigned char>(name.front())) != 0;
}
bool is_function(std::string_view name) { return !name.empty() && !is_class(name); }

// "Llama31Config70B" and "Llama31ModelProvider70B" as "Llama3170B": letters and digits tell.
std::string model_of_class(std::string_view path) {
  const std::string_view name = last_of(path);
  for (const std::string_view middle : {"Config", "ModelProvider", "Provider"}) {
    const std::size_t at = name.find(middle);
    if (at == std::string_view::npos || at == 0) continue;
    return std::string(name.substr(0, at)) + std::string(name.substr(at + middle.size()));
  }
  return "";
}

class Translation {
 public:
  explicit Translation(const PythonSettings& read) : read_(read) {}

  PythonRecipe recipe(const LaunchFile& file) {
    find_callback();
    for (const FlatSetting& one : read_.settings) take(one);
    for (const FlatSetting& one : begun_) {
      if (!has_key(recipe_.settings, one.key)) recipe_.settings.push_back(one);
    }
    take_sequence();
    take_gpus();
    for (std::string name : {stem(read_.function), stem(file.name)}) {
      recipe_.models.push_back(std::move(name));
    }
    return std::move(recipe_);
  }

 private:
  // What overlaps is said to a callback of the trainer.
  void find_callback() {
    for (const FlatSetting& one : read_.settings) {
      const bool is_callback = one.key.starts_with("trainer.callbacks.") &&
                               one.key.ends_with(kMadeBy) &&
                               last_of(one.value) == "MegatronCommOverlapCallback";
      if (is_callback) callback_ = one.key.substr(0, one.key.size() - kMadeBy.size());
    }
  }

  std::string key_of(std::string key) const {
    const bool is_of_callback = !callback_.empty() && key.starts_with(callback_);
    if (is_of_callback) key.replace(0, callback_.size(), "comm_overlap.");
    for (const Place& place : kPlaces) {
      if (!key.starts_with(place.nemo)) continue;
      return std::string(place.bridge) + key.substr(place.nemo.size());
    }
    return key;
  }

  void take(const FlatSetting& one) {
    std::string key = key_of(one.key);
    const bool is_by_place =
        !key.empty() && std::isdigit(static_cast<unsigned char>(key.front())) != 0;
    if (is_by_place) {  // what a recipe of another file was called with
      const std::string model = last_of(key) == kMadeBy ? model_of_class(one.value) : "";
      if (!model.empty()) recipe_.models.push_back(model);
      return;
    }
    if (last_of(key) == kMadeBy) {
      key.resize(key.size() - std::min(key.size(), kMadeBy.size() + 1));
      take_maker(key, one);
    } else if (key == "model.0" || key == "model.version") {
      recipe_.models.push_back(one.value);
    } else if (key == "mixed_precision.0") {
      set("mixed_precision", one);
    } else {
      set(key, one);
    }
  }

  // `key` is of what the function or class in `one` made.
  void take_maker(const std::string& key, const FlatSetting& one) {
    const std::string_view name = last_of(one.value);
    for (const Beginning& row : beginnings()) {
      if (key != row.key || name != row.made_by) continue;
      begun_.insert(begun_.end(), row.settings.begin(), row.settings.end());
      if (key.empty()) return;
    }
    if (key.empty()) take_root(one);
    if (key == "trainer" && is_function(name)) recipe_.builds_on = one.value;
    if (key == "model" || key == "model.config") {
      const std::string model = is_function(name) ? "" : model_of_class(one.value);
      if (!model.empty()) recipe_.models.push_back(model);
    }
    if (key == "mixed_precision" && is_function(name) && name != "get_mixed_precision_config") {
      set("mixed_precision", {key, std::string(name), one.line});
      // NeMo's recipe of this name gathers weights in 16 bits.
      const bool gathers = one.value.starts_with("nemo.") && name.ends_with("_with_mxfp8_mixed");
      if (gathers) set("mixed_precision.fp8_param_gather", {key, "false", one.line});
    }
    if (key == "peft") set("peft", {key, std::string(name), one.line});
  }

  // A recipe is whole where a class made it, or parts of it were given to what runs it; else a
  // function of another file knows the rest.
  void take_root(const FlatSetting& one) {
    const std::string_view name = last_of(one.value);
    const bool is_run =
        std::any_of(read_.settings.begin(), read_.settings.end(), [](const FlatSetting& other) {
          return other.key == fmt::format("trainer.{}", kMadeBy) && !other.value.empty();
        });
    if (is_function(name) && !is_run) build_on(one.value);
    if (name == "_peft_common") set("peft", {"", std::string(name), 0});
  }

  // "llm.llama3_70b.pretrain_recipe" and "llama3_8b_pretrain_config" name their model.
  void build_on(const std::string& path) {
    recipe_.builds_on = path;
    const std::string_view name = last_of(path);
    recipe_.models.push_back(stem(std::string(name)));
    if (path.size() > name.size()) {
      recipe_.models.emplace_back(last_of(path.substr(0, path.size() - name.size() - 1)));
    }
  }

  static std::string stem(std::string name) {
    for (const std::string_view end :
         {"_pretrain", "_sft", "_finetune", "_config", "_recipe", ".py"}) {
      const std::size_t at = name.find(end);
      if (at != std::string::npos) name.resize(at);
    }
    return name;
  }

  void set(const std::string& key, const FlatSetting& one) {
    std::erase_if(recipe_.settings, [&](const FlatSetting& other) { return other.key == key; });
    recipe_.settings.push_back({key, one.value, one.line});
  }

  // Both sections have it and must agree; what a common function began with is no word of either.
  void take_sequence() {
    const FlatSetting* found = find_setting(recipe_.settings, "dataset.seq_length");
    if (found == nullptr) return;
    const FlatSetting said = *found;
    std::erase_if(recipe_.settings, [&](const FlatSetting& one) { return one.key == said.key; });
    const bool is_begun = said.line == 0 && has_key(recipe_.settings, "model.seq_length");
    if (!is_begun) set("model.seq_length", said);
  }

  void take_gpus() {
    const auto number = [&](std::string_view key) {
      const FlatSetting* found = find_setting(recipe_.settings, key);
      return found == nullptr ? std::nullopt : parse_number<std::int64_t>(found->value);
    };
    constexpr std::int64_t kMost = 1 << 16;
    const auto nodes = number("trainer.num_nodes"), devices = number("trainer.devices");
    if (nodes && devices && *nodes > 0 && *devices > 0 && *nodes <= kMost && *devices <= kMost) {
      recipe_.gpus = *nodes * *devices;
    }
    // "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config"
    const std::string& name = read_.function;
    const std::size_t end = name.find("gpu_");
    if (recipe_.gpus > 0 || end == std::string::npos) return;
    const std::size_t begin = name.rfind('_', end) + 1;
    recipe_.gpus = parse_number<std::int64_t>(name.substr(begin, end - begin)).value_or(0);
  }

  const PythonSettings& read_;
  std::string callback_;  // "trainer.callbacks.1."; empty: none of overlap
  std::vector<FlatSetting> begun_;
  PythonRecipe recipe_;
};

// Settings that a plan is made of, or may be.
bool makes_plans(std::string_view key) {
  constexpr std::string_view kPatterns =
      "model.* ddp.* mixed_precision* comm_overlap.* train.micro_batch_size "
      "train.global_batch_size trainer.num_nodes trainer.devices trainer.callbacks* dist.*";
  return matches_any(key, kPatterns);
}

}  // namespace

Result<PythonRecipe> read_recipe(const LaunchFile& file,
                                 const std::map<std::string, std::string>& given) {
  TPSIM_TRY(const PythonSettings read, flat_python(path_of(file), given));
  PythonRecipe recipe = Translation(read).recipe(file);
  recipe.passed_elsewhere = read.passed_elsewhere;
  std::map<std::string, std::string> said = given;
  std::erase_if(said, [](const auto& one) { return !names_setting(one.first); });
  recipe.settings = with_values(std::move(recipe.settings), said);
  for (const FlatSetting& one : recipe.settings) {
    const std::string where = place_of(path_of(file), one.line);
    const bool is_none = one.value.empty() || matches_any(in_lower_case(one.value), "none null");
    if (one.key == "peft" && !is_none) {
      return bad_input(fmt::format("trains adapters (peft: {})", one.value), where,
                       "tpsim's plans train every weight: import a recipe that trains all of them");
    }
    if (one.value != kComputed || !makes_plans(one.key)) continue;
    return bad_input(fmt::format("what {} is only running the file tells", one.key), where,
                     fmt::format("--set {}=VALUE", one.key));
  }
  return recipe;
}

}  // namespace tpsim
