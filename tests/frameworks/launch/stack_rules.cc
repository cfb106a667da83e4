#include "tests/frameworks/launch/stack_rules.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/json/json_document.h"
#include "tests/frameworks/launch/config_rules.h"
#include "tests/frameworks/launch/stack_options.h"

namespace tpsim::test {
namespace {

using Values = std::map<std::string, std::string>;

bool is_number(const std::string& text, bool whole) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  return code == std::errc() && end == last && (!whole || text.find_first_of(".e") == text.npos);
}

bool suits(const std::string& kind, const std::string& value) {
  if (kind == "*") return !value.empty();
  if (kind == "int" || kind == "float") return is_number(value, kind == "int");
  return ("|" + kind + "|").find("|" + value + "|") != std::string::npos;
}

// argparse without abbreviations; an option given twice would silently win, so it is refused.
std::string parse_options(const std::vector<std::string>& words, const std::vector<Option>& known,
                          Values& values) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Option* option = nullptr;
    for (const Option& one : known) {
      if (words[i] == one.name) option = &one;
    }
    if (option == nullptr) return "unrecognized argument " + words[i];
    if (values.count(words[i]) > 0) return words[i] + " is given twice";
    std::string value = "yes";
    if (*option->kind != '\0') {
      if (i + 1 == words.size()) return words[i] + " expects a value";
      value = words[i + 1];
      if (!suits(option->kind, value)) return words[i] + ": invalid value " + value;
    }
    values[words[i]] = value;
    i += *option->kind != '\0' ? 1 : 0;
  }
  return "";
}

std::int64_t number(const Values& values, const std::string& name, std::int64_t otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : std::stoll(found->second);
}
std::string word(const Values& values, const std::string& name, const char* otherwise = "") {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}
bool has(const Values& values, const std::string& name) { return values.count(name) > 0; }

// Stages of "Et*2|t|t*3L" and the blocks in them, as PipelineParallelLayerLayout reads them: any
// stage may repeat letters by *n; E first, L last.
std::optional<std::pair<std::int64_t, std::int64_t>> read_layout(const std::string& text) {
  std::int64_t stages = 1;
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '|') ++stages;
    if ((text[i] == 'E') != (i == 0) || (text[i] == 'L') != (i + 1 == text.size())) return {};
    if (text[i] != 't') {
      if (text[i] != '|' && text[i] != 'E' && text[i] != 'm' && text[i] != 'L') return {};
      continue;
    }
    std::int64_t count = 1;
    if (i + 1 < text.size() && text[i + 1] == '*') {
      const auto [end, code] =
          std::from_chars(text.data() + i + 2, text.data() + text.size(), count);
      if (code != std::errc() || count < 1) return {};
      i = static_cast<std::size_t>(end - text.data()) - 1;
    }
    blocks += count;
  }
  return std::pair(stages, blocks);
}

std::string megatron_stages(const Values& v, std::int64_t pp) {
  const std::int64_t layers = number(v, "--num-layers", 0);
  const std::int64_t virtual_stages = number(v, "--num-virtual-stages-per-pipeline-rank", 1);
  const bool has_layout = has(v, "--pipeline-model-parallel-layout");
  if (has_layout && has(v, "--num-virtual-stages-per-pipeline-rank")) {
    return "no more than one of layout and virtual stages";
  }
  if (!has_layout) {
    return first_broken({{layers % (pp * virtual_stages) == 0, "layers % stages"},
                         {virtual_stages == 1 || pp > 1, "interleaving needs pp > 1"}});
  }
  const auto layout = read_layout(word(v, "--pipeline-model-parallel-layout"));
  if (!layout) return "a layout that does not parse";
  return first_broken({{layout->first % pp == 0, "layout's stages % pp"},
                       {layout->first == pp || pp > 1, "interleaving needs pp > 1"},
                       {layout->second == layers, "layout's blocks"}});
}

// What its expert groups ask for: they are cut out of data x context parallel ranks.
std::string megatron_experts(const Values& v, std::int64_t tp, std::int64_t data_ranks) {
  const std::int64_t experts = number(v, "--num-experts", 0);
  const std::int64_t ep = number(v, "--expert-model-parallel-size", 1);
  const bool capacity = has(v, "--moe-expert-capacity-factor");
  if (experts == 0) return ep == 1 && !capacity ? "" : "no experts";
  const std::int64_t etp = number(v, "--expert-tensor-parallel-size", tp);
  return first_broken(
      {{experts % ep == 0, "experts % ep"},
       {data_ranks * tp % (ep * etp) == 0, "ranks % (ep etp)"},
       {tp == 1 || has(v, "--sequence-parallel"), "experts with tp want sequence parallelism"},
       {number(v, "--moe-router-topk", 2) > 1 || has(v, "--moe-router-pre-softmax"),
        "top-1 wants the softmax first"},
       {!has(v, "--moe-pad-expert-input-to-capacity") || capacity, "padding wants a capacity"},
       {!capacity || word(v, "--moe-token-dispatcher-type") == "alltoall", "dispatcher"},
       {has(v, "--disable-bias-linear"), "experts with biases"}});
}

std::string validate_megatron(const Values& v, const Script& script) {
  const std::int64_t tp = number(v, "--tensor-model-parallel-size", 1);
  const std::int64_t pp = number(v, "--pipeline-model-parallel-size", 1);
  const std::int64_t cp = number(v, "--context-parallel-size", 1);
  const std::int64_t world = world_of(script);
  if (world % (tp * pp * cp) != 0) return "world size % (tp pp cp)";
  const std::int64_t dp = world / (tp * pp * cp);
  const std::int64_t mb = number(v, "--micro-batch-size", 0);
  const std::int64_t batch = number(v, "--global-batch-size", mb * dp);
  const bool fsdp = has(v, "--use-megatron-fsdp");
  const auto connections = script.variables.find("CUDA_DEVICE_MAX_CONNECTIONS");
  const bool ordered = connections != script.variables.end() && connections->second == "1";
  const bool overlapped = has(v, "--overlap-moe-expert-parallel-comm");
  const std::string stages = megatron_stages(v, pp);
  if (!stages.empty()) return stages;
  const std::string experts = megatron_experts(v, tp, dp * cp);
  if (!experts.empty()) return experts;
  return first_broken(
      {{mb > 0 && batch > 0 && batch % (mb * dp) == 0, "global batch % (micro-batch dp)"},
       {!(has(v, "--bf16") && has(v, "--fp16")), "bf16 and fp16"},
       {number(v, "--num-attention-heads", 0) % tp == 0, "heads % tp"},
       {number(v, "--num-query-groups", tp) % tp == 0, "query groups % tp"},
       {has(v, "--group-query-attention") == has(v, "--num-query-groups"), "query groups"},
       {number(v, "--max-position-embeddings", 0) >= number(v, "--seq-length", 0), "positions"},
       {word(v, "--recompute-granularity") != "selective" || !has(v, "--recompute-method"),
        "selective recompute has no method"},
       {word(v, "--recompute-granularity") != "full" || has(v, "--recompute-method"),
        "full recompute has a method"},
       {!fsdp || word(v, "--ckpt-format") == "fsdp_dtensor", "FSDP's checkpoint format"},
       {has(v, "--optimizer-cpu-offload") <= has(v, "--use-precision-aware-optimizer"),
        "offload wants the precision-aware optimizer"},
       {has(v, "--use-precision-aware-optimizer") <= has(v, "--use-distributed-optimizer"),
        "the precision-aware optimizer wants the distributed one"},
       {!fsdp || !ordered, "FSDP wants more than one connection"},
       {fsdp || overlapped || tp * cp == 1 || ordered, "tensor parallelism wants one connection"},
       {!overlapped || !ordered, "overlapped experts want more than one connection"},
       {!has(v, "--overlap-param-gather") || has(v, "--overlap-grad-reduce"),
        "overlap of gathers alone"},
       {!has(v, "--overlap-param-gather") || fsdp || has(v, "--use-distributed-optimizer"),
        "overlap of gathers without shards"},
       {cp == 1 || number(v, "--seq-length", 0) % (2 * cp) == 0, "sequence % 2 cp"},
       {!has(v, "--sequence-parallel") || tp > 1, "sequence parallelism would be switched off"}});
}

std::string objection_of_megatron(const Script& script) {
  Values values;
  const std::string fault = parse_options(script.arguments, megatron_options(), values);
  return fault.empty() ? validate_megatron(values, script) : fault;
}

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
  Values v;
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

// Two levels of YAML mappings with plain or double-quoted scalars.
std::string objection_of_nemo(const Script& script, const std::string& yaml) {
  std::vector<std::string> words;
  std::string section;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return "no mapping: " + line;
    if (line[0] != ' ') {
      if (colon + 1 != line.size()) return "no section: " + line;
      section = line.substr(0, colon);
      continue;
    }
    if (line.substr(0, 2) != "  " || line[2] == ' ') return "indentation: " + line;
    std::string value = line.substr(colon + 2);
    const bool is_quoted = value.front() == '"' && value.back() == '"' && value.size() > 1;
    if (!is_quoted && value.find_first_of("|*:#\"") != std::string::npos)
      return "unquoted: " + line;
    words.push_back(section + "." + line.substr(2, colon - 2));
    words.push_back(is_quoted ? value.substr(1, value.size() - 2) : value);
  }
  Values v;
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
  Values v;
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
  const std::int64_t local = number(v, "--training.local_batch_size", 8);
  const bool narrow = word(v, "--training.mixed_precision_param", "bfloat16") == "bfloat16";
  const bool looped = word(v, "--parallelism.pipeline_parallel_schedule") == "Interleaved1F1B";
  return first_broken(
      {{copies * shards * tp * pp * cp == world_of(script), "degrees and world size"},
       {number(v, "--training.global_batch_size", 1) % (local * copies * shards) == 0,
        "global batch % (local batch dp)"},
       {local % degree("pipeline_parallel_microbatch_size") == 0, "local batch % micro-batch"},
       {looped || pp == 1 || local / degree("pipeline_parallel_microbatch_size") >= pp,
        "fewer micro-batches than stages"},
       {tp * cp == 1 || number(v, "--training.seq_len", 0) % (2 * tp * cp) == 0,
        "sequence % (2 tp cp)"},
       {!narrow || shards * cp > 1 || tp * pp == 1,
        "mixed precision without FSDP, beside DDP alone"},
       {!looped || pp > 1, "a looped schedule on one stage"}});
}

std::string objection_of_slurm(const Script& script, const std::map<std::string, std::string>& by) {
  Values directives;
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
  if (file("ds_config.json")) return objection_of_deepspeed(script, by.at("ds_config.json"));
  if (file("nemo.yaml")) return objection_of_nemo(script, by.at("nemo.yaml"));
  if (file("nanotron.yaml")) return objection_of_nanotron(script, by.at("nanotron.yaml"));
  if (file("accelerate.yaml")) return objection_of_accelerate(script, by.at("accelerate.yaml"));
  return objection_of_megatron(script);
}

// Words of one line, single quotes taken off; nothing when a quote stays open or bash would expand.
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
    case LaunchStack::kSlurm: return objection_of_slurm(script, by);
    case LaunchStack::kKubernetes: return objection_of_kubernetes(files.front().text);
  }
  return "?";
}

}  // namespace tpsim::test
