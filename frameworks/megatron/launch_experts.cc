// Writes and reads Megatron's options for experts. Source: megatron/training/arguments.py and
// megatron/core/transformer/transformer_config.py.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/stack_spec.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

constexpr const char* kDispatcherType = "--moe-token-dispatcher-type";
constexpr const char* kFlexBackend = "--moe-flex-dispatcher-backend";
constexpr const char* kDeepEp = "--moe-enable-deepep";  // older option for DeepEP
constexpr const char* kFlex = "flex";                   // dispatcher type for DeepEP and HybridEP
constexpr const char* kSeq = "alltoall_seq";            // all-to-all of hidden slices

// A switch of Megatron, the software part that it sets, and the part's value if the switch is
// present or absent.
struct ExpertSwitch {
  const char* option;
  StackPart part;
  std::string_view on;
  std::string_view off = {};  // value if the switch is absent; empty: unknown
};
constexpr ExpertSwitch kSwitches[] = {
    {"--moe-grouped-gemm", StackPart::kExpertKernel, "grouped", "looped"},
    {"--moe-permute-fusion", StackPart::kPermute, "fused", "unfused"},
    {"--moe-router-fusion", StackPart::kRouterKernel, "fused", "torch"},
    {"--moe-router-force-load-balancing", StackPart::kExpertLoad, "balanced"},
    {"--overlap-moe-expert-parallel-comm", StackPart::kEpOverlap, "on"},
    {"--delay-wgrad-compute", StackPart::kDelayWgrad, "on"},
};

std::int64_t value_of(StackPart part, std::string_view word) {
  return parse_value(row_of(part), word).value();
}

// Evaluates an expression of lists in Python syntax, such as "[0]*3+[1]*58" or "[1,0]*2", with
// elements 0 and 1 and with parentheses.
class LayerList {
 public:
  LayerList(std::string_view text, std::size_t most) : most_(most) {
    for (const char c : text) {
      if (c != ' ' && c != '\t' && c != '\'' && c != '"') text_ += c;
    }
  }

  // Returns nothing if the text is not such an expression, or if the list is longer than `most`.
  std::optional<std::vector<bool>> value() {
    auto all = sum(0);
    return all && at_ == text_.size() ? all : std::nullopt;
  }

 private:
  using Flags = std::optional<std::vector<bool>>;
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<std::int64_t> number() {
    std::size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    const auto value = parse_number<std::int64_t>(std::string_view(text_).substr(at_, end - at_));
    at_ = end;
    return value;
  }
  Flags sum(int depth) {
    Flags all = product(depth);
    while (all && take('+')) {
      const Flags more = product(depth);
      if (!more) return std::nullopt;
      all->insert(all->end(), more->begin(), more->end());
      if (all->size() > most_) return std::nullopt;
    }
    return all;
  }
  Flags product(int depth) {
    Flags all = list(depth);
    while (all && take('*')) {
      const auto times = number();
      const auto most = static_cast<std::int64_t>(most_);
      if (!times || *times > most) return std::nullopt;
      std::vector<bool> repeated;
      for (std::int64_t i = 0; i < *times && repeated.size() <= most_; ++i) {
        repeated.insert(repeated.end(), all->begin(), all->end());
      }
      all = std::move(repeated);
      if (all->size() > most_) return std::nullopt;
    }
    return all;
  }
  Flags list(int depth) {
    constexpr int kDeepest = 16;
    if (depth > kDeepest) return std::nullopt;
    if (take('(')) {
      Flags inside = sum(depth + 1);
      return take(')') ? inside : std::nullopt;
    }
    std::vector<bool> flags;
    if (!take('[')) return std::nullopt;
    while (!take(']')) {
      const auto flag = number();
      if (!flag || *flag > 1 || flags.size() >= most_) return std::nullopt;
      flags.push_back(*flag == 1);
      if (!take(',') && (at_ >= text_.size() || text_[at_] != ']')) return std::nullopt;
    }
    return flags;
  }

  std::string text_;
  std::size_t most_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<bool>> expert_layers(const LaunchOption& option, std::int64_t layers) {
  const auto size = static_cast<std::size_t>(layers);
  if (const auto unset = unset_name(option.value); unset) {
    return bad_input(fmt::format("{} is {}", option.key, why_unset(*unset)), "",
                     "add " + unset_remedy(*unset));
  }
  const auto number = parse_number<std::int64_t>(trimmed(option.value));
  std::vector<bool> flags(size, true);
  if (number && option.key == "--first-k-dense-replace" && *number >= 0) {
    std::fill_n(flags.begin(), std::min(layers, *number), false);
    return flags;
  }
  if (number && option.key == "--moe-layer-freq" && *number >= 1) {
    for (std::size_t i = 0; i < size; ++i) flags[i] = static_cast<std::int64_t>(i) % *number == 0;
    return flags;
  }
  // A YAML list arrives as words separated by spaces.
  std::string text = option.value;
  if (words_in(text).size() == size && size > 1) {
    text = fmt::format("[{}]", fmt::join(words_in(text), ","));
  }
  const auto list = LayerList(text, size).value();
  if (list && list->size() == size) return *list;
  return bad_input(fmt::format("{} is {}; it must be a number, or a list with 0 or 1 for each of "
                               "the {} layers",
                               option.key, option.value, layers),
                   "", fmt::format("write [1]*{} for experts in every layer", layers));
}

// Adds the options of experts. With a capacity factor, tokens over the capacity are dropped by
// position and unused slots are padded, so that shapes match the plan. Without one no token is
// dropped. The load-balancing auxiliary loss is off.
void add_megatron_experts(const ModelSpec& model, LaunchOptions& out) {
  if (!has_experts(model)) return;
  out.add("--num-experts", model.experts.count);
  out.add("--moe-ffn-hidden-size", model.ffn_hidden);
  out.add("--moe-router-topk", model.experts.per_token);
  if (model.experts.per_token == 1) out.add("--moe-router-pre-softmax");
  out.add("--moe-router-load-balancing-type", "none");
  if (model.experts.dropless) return;
  out.add("--moe-expert-capacity-factor", fmt::format("{}", model.experts.capacity_factor));
  out.add("--moe-pad-expert-input-to-capacity");
  out.add("--moe-token-drop-policy", "position");
}

// Source: megatron/core/transformer/moe/token_dispatcher.py.
Status add_megatron_dispatch(const PlanFile& file, const StackSpec& software, LaunchOptions& out) {
  if (!has_experts(file.model)) return Ok{};
  const StackSpec stack = with_parts(software, file.parts);
  const Dispatcher dispatcher = stack.parts.dispatcher;
  const bool is_flex = dispatcher == Dispatcher::kDeepEp || dispatcher == Dispatcher::kHybridEp;
  if (!file.model.experts.dropless && dispatcher != Dispatcher::kAllToAll) {
    return bad_input(fmt::format("the {} dispatcher does not support experts with a capacity",
                                 name_of(dispatcher)),
                     "", "only alltoall pads expert slots: use --dispatcher alltoall");
  }
  out.add(kDispatcherType, is_flex ? kFlex : std::string(name_of(dispatcher)));
  if (is_flex) out.add(kFlexBackend, std::string(name_of(dispatcher)));
  for (const ExpertSwitch& one : kSwitches) {
    const bool is_overlap = one.part == StackPart::kEpOverlap || one.part == StackPart::kDelayWgrad;
    // Megatron-Core refuses delayed weight gradients without the overlap.
    if (is_overlap && (file.plan.degrees.ep == 1 || !stack.parts.ep_overlap)) continue;
    if (row_of(one.part).get(stack) == value_of(one.part, one.on)) out.add(one.option);
  }
  return Ok{};
}

void read_megatron_dispatch(LaunchOptionReader& in, const ModelSpec& model) {
  const std::string type = in.text(kDispatcherType).value_or("allgather");
  const std::string backend = in.text(kFlexBackend).value_or("deepep");
  const bool deep = in.flag(kDeepEp);
  for (const ExpertSwitch& one : kSwitches) in.flag(one.option);
  if (!has_experts(model)) return;
  const bool exchanges = type == "allgather" || type == "alltoall" || type == kSeq;
  if (!exchanges && type != kFlex) {
    in.fail(fmt::format("{} is {}; it must be allgather, alltoall or flex", kDispatcherType, type));
  }
  if (backend != "deepep" && backend != "hybridep") {
    in.fail(fmt::format("{} is {}; it must be deepep or hybridep", kFlexBackend, backend));
  }
  if (deep && type != kFlex) in.fail(fmt::format("{} needs {} flex", kDeepEp, kDispatcherType));
}

void check_expert_ranks(LaunchOptionReader& in, const ModelSpec& model,
                        const ParallelDegrees& degrees, std::int64_t gpus) {
  const std::int64_t group = degrees.ep * (degrees.etp > 0 ? degrees.etp : degrees.tp);
  const std::int64_t ranks = group / std::gcd(group, degrees.tp * degrees.cp);
  if (!has_experts(model) || degrees.dp % ranks == 0) return;
  in.fail(fmt::format("{} GPUs give {} data-parallel ranks, but the experts need a multiple of {}",
                      gpus, degrees.dp, ranks),
          fmt::format("state the number of GPUs: --gpus N, a multiple of {}",
                      degrees.tp * degrees.pp * degrees.cp * ranks));
}

PartValues dispatch_parts(const std::vector<LaunchOption>& options, const ModelSpec& model) {
  PartValues parts;
  if (!has_experts(model)) return parts;
  std::string word = setting_value(options, kDispatcherType, "allgather");
  const bool is_seq = word == kSeq;
  if (is_seq) word = "alltoall";
  if (word == kFlex) word = setting_value(options, kFlexBackend, "deepep");
  parts[StackPart::kDispatcher] = value_of(StackPart::kDispatcher, word);
  for (const ExpertSwitch& one : kSwitches) {
    const std::string_view said = has_key(options, one.option) ? one.on : one.off;
    if (!said.empty()) parts[one.part] = value_of(one.part, said);
  }
  const std::int64_t unfused = value_of(StackPart::kPermute, "unfused");
  if (is_seq && parts[StackPart::kPermute] == unfused) {
    parts[StackPart::kPermute] = value_of(StackPart::kPermute, "unfused_seq");
  }
  return parts;
}

}  // namespace tpsim
