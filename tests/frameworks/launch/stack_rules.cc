#include "tests/frameworks/launch/stack_rules.h"

#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/json/json_document.h"
#include "tests/frameworks/launch/config_rules.h"
#include "tests/frameworks/launch/option_values.h"

namespace tpsim::test {
namespace {

std::int64_t json_number(const JsonValue& json, const char* key) {
  const JsonValue* value = json.find(key);
  const auto* whole = value == nullptr ? nullptr : value->as<std::int64_t>();
  return whole == nullptr ? -1 : *whole;
}

std::string validate_deepspeed_json(const JsonValue& json, std::int64_t dp, std::int64_t stage) {
  const std::set<std::string> known = {"train_batch_size",
                                       "train_micro_batch_size_per_gpu",
                                       "gradient_accumulation_steps",
                                       "gradient_clipping",
                                       "zero_optimization",
                                       "bf16",
                                       "fp16",
                                       "steps_per_print",
                                       "wall_clock_breakdown"};
  for (const JsonMember& member : *json.as<JsonValue::Object>()) {
    if (known.count(member.key) == 0) return "unknown key " + member.key;
  }
  const std::int64_t micro = json_number(json, "train_micro_batch_size_per_gpu");
  const std::int64_t steps = json_number(json, "gradient_accumulation_steps");
  const JsonValue* zero = json.find("zero_optimization");
  const bool bf16 = json.find("bf16") != nullptr;
  const bool fp16 = json.find("fp16") != nullptr;
  return first_broken(
      {{json_number(json, "train_batch_size") == micro * steps * dp, "batch = micro x steps x dp"},
       {zero != nullptr && json_number(*zero, "stage") == stage, "stage of arguments and JSON"},
       {stage < 2, "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism"},
       {!(bf16 && fp16), "bf16 and fp16"},
       {stage == 0 || bf16 || fp16, "ZeRO is only for fp16 or bf16"},
       {!bf16 || stage == 0, "the bf16 optimizer wants stage 0"}});
}

std::string objection_of_deepspeed(const Script& script, const std::string& config) {
  OptionValues v;
  const std::string fault = parse_options(script.arguments, deepspeed_options(), v);
  if (!fault.empty()) return fault;
  const std::int64_t model_parallel =
      number(v, "--tensor-model-parallel-size", 1) * number(v, "--pipeline-model-parallel-size", 1);
  if (world_of(script) % model_parallel != 0) return "world size % (tp pp)";
  const std::int64_t dp = world_of(script) / model_parallel;
  const bool rotary = word(v, "--position-embedding-type", "absolute") == "rotary";
  const std::string broken = first_broken(
      {{number(v, "--hidden-size", 0) % number(v, "--num-attention-heads", 1) == 0,
        "hidden % heads"},
       {number(v, "--global-batch-size", 0) % (number(v, "--micro-batch-size", 1) * dp) == 0,
        "global batch % (micro-batch dp)"},
       {rotary != has(v, "--max-position-embeddings"), "max_position_embeddings and rotary"},
       {has(v, "--glu-activation") == has(v, "--no-bias-gelu-fusion"), "glu and bias-gelu fusion"},
       {!(has(v, "--bf16") && has(v, "--fp16")), "bf16 and fp16"}});
  if (!broken.empty()) return broken;
  const auto json = parse_json(config, "ds_config.json");
  if (!json.ok()) return to_string(json.error());
  const bool same_dtype = has(v, "--bf16") == (json->find("bf16") != nullptr) &&
                          has(v, "--fp16") == (json->find("fp16") != nullptr);
  if (!same_dtype) return "precision of arguments and JSON";
  return validate_deepspeed_json(*json, dp, number(v, "--zero-stage", 1));
}

// The checks of DeepSpeedConfig and of transformers/integrations/deepspeed.py, which compares the
// Trainer's arguments with the JSON.
std::string objection_of_deepspeed_trainer(const Script& script, const std::string& config) {
  const auto value = [&](const char* option) -> std::string {
    const auto at = std::find(script.arguments.begin(), script.arguments.end(), option);
    return at == script.arguments.end() || at + 1 == script.arguments.end() ? "" : *(at + 1);
  };
  const auto json = parse_json(config, "ds_config.json");
  if (!json.ok()) return to_string(json.error());
  const JsonValue* const tensor = json->find("tensor_parallel");
  const std::int64_t tp = tensor == nullptr ? 1 : json_number(*tensor, "autotp_size");
  const std::int64_t micro = json_number(*json, "train_micro_batch_size_per_gpu");
  const std::int64_t steps = json_number(*json, "gradient_accumulation_steps");
  const JsonValue* const zero = json->find("zero_optimization");
  return first_broken(
      {{value("--deepspeed") == "ds_config.json", "the JSON is not named"},
       {json_number(*json, "train_batch_size") == micro * steps * world_of(script) / tp,
        "batch = micro x steps x dp"},
       {value("--per_device_train_batch_size") == std::to_string(micro), "micro-batches"},
       {value("--gradient_accumulation_steps") == std::to_string(steps), "accumulation"},
       {(value("--bf16") == "true") == (json->find("bf16") != nullptr), "bf16"},
       {(value("--fp16") == "true") == (json->find("fp16") != nullptr), "fp16"},
       {zero != nullptr && json_number(*zero, "stage") >= 0 && json_number(*zero, "stage") <= 3,
        "stage"}});
}

// YAML mappings, indented by two spaces, with plain or double-quoted scalars.
std::string objection_of_nemo(const Script& script, const std::string& yaml) {
  std::vector<std::string> words, sections;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':'), start = line.find_first_not_of(' ');
    if (colon == std::string::npos) return "no mapping: " + line;
    if (start % 2 != 0 || start / 2 > sections.size()) return "indentation: " + line;
    sections.resize(start / 2);
    std::string key;
    for (const std::string& section : sections) key += section + ".";
    key += line.substr(start, colon - start);
    if (colon + 1 == line.size()) {
      sections.push_back(line.substr(start, colon - start));
      continue;
    }
    std::string value = line.substr(colon + 2);
    const bool is_quoted = value.front() == '"' && value.back() == '"' && value.size() > 1;
    if (!is_quoted && value.find_first_of("|*:#\"") != std::string::npos)
      return "unquoted: " + line;
    words.push_back(key);
    words.push_back(is_quoted ? value.substr(1, value.size() - 2) : value);
  }
  OptionValues v;
  const std::string fault = parse_options(words, nemo_keys(), v);
  if (!fault.empty()) return fault;
  const std::int64_t tp = number(v, "model.tensor_model_parallel_size", 1);
  const std::int64_t pp = number(v, "model.pipeline_model_parallel_size", 1);
  const std::int64_t cp = number(v, "model.context_parallel_size", 1);
  if (world_of(script) % (tp * pp * cp) != 0) return "world size % (tp pp cp)";
  const std::int64_t dp = world_of(script) / (tp * pp * cp);
  return first_broken(
      {{number(v, "train.global_batch_size", 0) % (number(v, "train.micro_batch_size", 1) * dp) ==
            0,
        "global batch % (micro-batch dp)"},
       {word(v, "model.sequence_parallel") != "true" || tp > 1, "sequence parallelism"},
       {word(v, "ddp.use_megatron_fsdp") == word(v, "dist.use_megatron_fsdp"),
        "FSDP is switched on in ddp and in dist"},
       {word(v, "ddp.use_megatron_fsdp") != "true" ||
            word(v, "dist.use_tp_pp_dp_mapping") != "true",
        "FSDP and the mapping tp-pp-dp"},
       {!has(v, "ddp.overlap_param_gather") || has(v, "ddp.overlap_grad_reduce"),
        "overlap of gathers alone"},
       {word(v, "ddp.use_megatron_fsdp") != "true" ||
            word(v, "checkpoint.ckpt_format") == "fsdp_dtensor",
        "FSDP's checkpoint format"}});
}

std::string objection_of_titan(const Script& script) {
  OptionValues v;
  const std::string fault = parse_options(script.arguments, titan_options(), v);
  if (!fault.empty()) return fault;
  const auto degree = [&](const char* name) {
    return number(v, std::string("--parallelism.") + name, 1);
  };
  const std::int64_t copies = degree("data_parallel_replicate_degree");
  const std::int64_t shards = degree("data_parallel_shard_degree");
  const std::int64_t tp = degree("tensor_parallel_degree");
  const std::int64_t pp = degree("pipeline_parallel_degree");
  const std::int64_t cp = degree("context_parallel_degree");
  const std::int64_t ep = degree("expert_parallel_degree");
  const std::int64_t tokens = number(v, "--training.num_tokens_per_microbatch_per_dp_rank", 16384);
  const std::int64_t parts = pp > 1 ? degree("num_pp_microbatches") : 1;
  const bool narrow = word(v, "--training.mixed_precision_param", "bfloat16") == "bfloat16";
  const bool looped = word(v, "--parallelism.pipeline_parallel_schedule") == "Interleaved1F1B";
  const bool splits_tokens = has(v, "--parallelism.enable-sequence-parallel");
  return first_broken(
      {{copies * shards * tp * pp * cp == world_of(script), "degrees and world size"},
       {number(v, "--training.num_tokens_per_train_step", 1) % (tokens * parts * copies * shards) ==
            0,
        "tokens of a step % (tokens of a micro-batch x micro-batches x dp)"},
       {looped || pp == 1 || parts >= pp, "fewer micro-batches than stages"},
       {tokens % ((splits_tokens ? tp : 1) * (cp > 1 ? 2 * cp : 1)) == 0,
        "tokens of a micro-batch % (2 tp cp)"},
       {shards * cp * tp % ep == 0, "ep and the ranks that shard weights"},
       {pp * ep == 1 || has(v, "--training.disable_cuda_graphs"), "CUDA graphs"},
       {!narrow || shards * cp > 1 || tp * pp == 1,
        "mixed precision without FSDP, beside DDP alone"},
       {!looped || pp > 1, "a looped schedule on one stage"}});
}

std::string objection_of_slurm(const Script& script, const std::map<std::string, std::string>& by) {
  OptionValues directives;
  for (const std::string& directive : script.directives) {
    const std::size_t equals = directive.find('=');
    directives[directive.substr(0, equals)] =
        equals == std::string::npos ? "" : directive.substr(equals + 1);
  }
  for (const char* wanted : {"--job-name", "--nodes", "--ntasks-per-node"}) {
    if (!has(directives, wanted)) return std::string("no ") + wanted;
  }
  if (by.count("plan.json") > 0) return "";
  if (!has(directives, "--gres")) return "no --gres";
  if (directives["--nodes"] != script.variables.at("NUM_NODES")) return "nodes asked and used";
  if (directives["--gres"] != "gpu:" + script.variables.at("GPUS_PER_NODE")) return "GPUs asked";
  const auto file = [&](const char* name) { return by.count(name) > 0; };
  if (file("ds_config.json")) {
    const bool is_trainer = std::count(script.arguments.begin(), script.arguments.end(),
                                       "--per_device_train_batch_size") > 0;
    const std::string& json = by.at("ds_config.json");
    return is_trainer ? objection_of_deepspeed_trainer(script, json)
                      : objection_of_deepspeed(script, json);
  }
  if (file("nemo.yaml")) return objection_of_nemo(script, by.at("nemo.yaml"));
  if (file("nanotron.yaml")) return objection_of_nanotron(script, by.at("nanotron.yaml"));
  if (file("accelerate.yaml")) return objection_of_accelerate(script, by.at("accelerate.yaml"));
  return objection_of_megatron(script);
}

// Splits a line into words and removes single quotes. None if a quote is open or bash would expand
// the line.
std::optional<std::vector<std::string>> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string current;
  bool inside = false;
  bool started = false;
  for (const char c : line) {
    if (c == '\'') {
      inside = !inside;
      started = true;
    } else if (!inside && (c == ' ' || c == '\t')) {
      if (started) words.push_back(std::exchange(current, ""));
      started = false;
    } else {
      if (!inside && std::string("|*()\"$&;<>?`\\").find(c) != std::string::npos) return {};
      current += c;
      started = true;
    }
  }
  if (started) words.push_back(current);
  if (inside) return {};
  return words;
}

}  // namespace

std::int64_t world_of(const Script& script) {
  return std::stoll(script.variables.at("NUM_NODES")) *
         std::stoll(script.variables.at("GPUS_PER_NODE"));
}

std::string first_broken(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    if (!rule.holds) return rule.objection;
  }
  return "";
}

Script run_script(const std::string& text) {
  Script script;
  bool in_array = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#SBATCH ", 0) == 0) script.directives.push_back(line.substr(8));
    if (line.empty() || line[0] == '#') continue;
    if (in_array && line != ")") {
      const auto words = words_of(line);
      if (!words) script.fault = "bash: " + line;
      if (words) script.arguments.insert(script.arguments.end(), words->begin(), words->end());
      continue;
    }
    in_array = line == "TRAIN_ARGS=(";
    const std::string assigned = line.rfind("export ", 0) == 0 ? line.substr(7) : line;
    const std::size_t equals = assigned.find('=');
    if (in_array || equals == std::string::npos || line[0] == ' ') continue;
    script.variables[assigned.substr(0, equals)] = assigned.substr(equals + 1);
  }
  return script;
}

std::string objection(LaunchStack stack, const std::vector<LaunchFile>& files) {
  std::map<std::string, std::string> by;
  for (const LaunchFile& file : files) by[file.name] = file.text;
  const Script script = run_script(files.front().text);
  if (!script.fault.empty()) return script.fault;
  switch (stack) {
    case LaunchStack::kMegatronLm: return objection_of_megatron(script);
    case LaunchStack::kMegatronDeepSpeed:
      return objection_of_deepspeed(script, by["ds_config.json"]);
    case LaunchStack::kNemo: return objection_of_nemo(script, by["nemo.yaml"]);
    case LaunchStack::kTorchTitan: return objection_of_titan(script);
    case LaunchStack::kNanotron: return objection_of_nanotron(script, by["nanotron.yaml"]);
    case LaunchStack::kAccelerate: return objection_of_accelerate(script, by["accelerate.yaml"]);
    case LaunchStack::kDeepSpeed:
      return objection_of_deepspeed_trainer(script, by["ds_config.json"]);
    case LaunchStack::kSlurm: return objection_of_slurm(script, by);
    case LaunchStack::kKubernetes: return objection_of_kubernetes(files.front().text);
  }
  return "?";
}

}  // namespace tpsim::test
