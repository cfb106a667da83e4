#include "tests/frameworks/launch/config_rules.h"

#include <algorithm>

namespace tpsim::test {
namespace {

// Returns the value of a key in a YAML file, at any depth. The key occurs once.
std::string yaml_value(const std::string& yaml, const std::string& key) {
  const std::size_t at = (" " + yaml).find(" " + key + ": ");
  const std::size_t line = ("\n" + yaml).find("\n" + key + ": ");
  const std::size_t start = std::min(at, line);
  if (start == std::string::npos) return "";
  const std::size_t begin = start + key.size() + 2;
  return yaml.substr(begin, yaml.find('\n', begin) - begin);
}

}  // namespace

// The assertions of nanotron/config/parallelism_config.py and config.py.
std::string objection_of_nanotron(const Script& script, const std::string& yaml) {
  const auto number_of = [&](const char* key) {
    const std::string value = yaml_value(yaml, key);
    return !value.empty() && value.find_first_not_of("0123456789") == value.npos ? std::stoll(value)
                                                                                 : 0;
  };
  const std::string mode = yaml_value(yaml, "tp_mode"), engine = yaml_value(yaml, "pp_engine");
  return first_broken(
      {{number_of("dp") * number_of("tp") * number_of("pp") == world_of(script), "world size"},
       {mode == "ALL_REDUCE" || mode == "REDUCE_SCATTER", "tp_mode"},
       {engine == "1f1b" || engine == "afab", "pp_engine"},
       {yaml_value(yaml, "zero_stage") == "0" || number_of("zero_stage") == 1, "zero_stage"},
       {number_of("hidden_size") % std::max<long long>(1, number_of("num_attention_heads")) == 0,
        "heads"},
       {number_of("batch_accumulation_per_replica") > 0 && number_of("micro_batch_size") > 0 &&
            number_of("sequence_length") > 0,
        "tokens"},
       {script.variables.count("CUDA_DEVICE_MAX_CONNECTIONS") > 0, "max connections"}});
}

// The checks of accelerate/commands/launch.py and of the Trainer's TrainingArguments.
std::string objection_of_accelerate(const Script& script, const std::string& yaml) {
  const auto gives = [&](const char* option) {
    return std::count(script.arguments.begin(), script.arguments.end(), option) == 1;
  };
  const std::string kind = yaml_value(yaml, "distributed_type");
  const std::string nodes = script.variables.at("NUM_NODES");
  return first_broken(
      {{gives("--per_device_train_batch_size") && gives("--gradient_accumulation_steps") &&
            gives("--max_length") && gives("--attn_implementation"),
        "arguments of the Trainer"},
       {yaml_value(yaml, "num_machines") == nodes, "machines"},
       {yaml_value(yaml, "num_processes") == std::to_string(world_of(script)), "processes"},
       {(kind == "FSDP") == (yaml.find("fsdp_config:") != std::string::npos), "fsdp_config"},
       {kind == "FSDP" || kind == "MULTI_GPU" || world_of(script) == 1, "distributed_type"},
       // YAML 1.1 reads the plain words as false.
       {kind != "NO" && yaml_value(yaml, "mixed_precision") != "no", "quotes"}});
}

std::string objection_of_kubernetes(const std::string& jobset) {
  const std::size_t at = jobset.find("NUM_NODES=");
  if (at == std::string::npos) return "no script";
  const std::string nodes = jobset.substr(at + 10, jobset.find('\n', at) - at - 10);
  return first_broken({{yaml_value(jobset, "apiVersion") == "jobset.x-k8s.io/v1alpha2", "version"},
                       {yaml_value(jobset, "completions") == nodes, "completions"},
                       {yaml_value(jobset, "parallelism") == nodes, "parallelism"},
                       {!yaml_value(jobset, "nvidia.com/gpu").empty(), "GPUs"}});
}

}  // namespace tpsim::test
