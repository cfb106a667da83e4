#include <charconv>
#include <optional>
#include <utility>

#include "tests/frameworks/launch/config_rules.h"
#include "tests/frameworks/launch/option_values.h"

namespace tpsim::test {
namespace {

// Returns the number of stages in a layout such as "Et*2|t|t*3L", and of blocks in them, by the
// rules of PipelineParallelLayerLayout. A letter may repeat by *n; E is first, L is last.
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

std::string megatron_stages(const OptionValues& v, std::int64_t pp) {
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

// Rules of expert groups, which are formed from tp x dp x cp ranks.
std::string megatron_experts(const OptionValues& v, std::int64_t tp, std::int64_t data_ranks) {
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

std::string validate_megatron(const OptionValues& v, const Script& script) {
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
       {number(v, "--num-query-groups", tp) % tp == 0 ||
            tp % number(v, "--num-query-groups", tp) == 0,
        "query groups % tp, or tp % query groups"},
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

}  // namespace

std::string objection_of_megatron(const Script& script) {
  OptionValues values;
  const std::string fault = parse_options(script.arguments, megatron_options(), values);
  return fault.empty() ? validate_megatron(values, script) : fault;
}

}  // namespace tpsim::test
