// Plans of every kind of model and layout, as options of `tpsim simulate`. The window must show the
// same numbers as the command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/options/options.h"

namespace tpsim::test {

using GivenOptions = std::vector<std::pair<cli::Opt, std::string>>;

inline cli::Arguments arguments_of(cli::Command command, const GivenOptions& given) {
  cli::Arguments arguments;
  arguments.command = command;
  for (const auto& [opt, text] : given) arguments.set(opt, text);
  return arguments;
}

struct GoldenPlan {
  const char* what;
  GivenOptions given;
};

inline std::vector<GoldenPlan> golden_plans() {
  using cli::Opt;
  using cli::opt_of;
  const auto model = [](const char* name, const char* cluster) {
    return GivenOptions{{Opt("--model"), name}, {Opt("--cluster"), cluster}};
  };
  const auto plan = [](const char* what, GivenOptions given, const GivenOptions& more) {
    given.insert(given.end(), more.begin(), more.end());
    given.emplace_back(Opt("--allow-oom"), "");
    return GoldenPlan{what, std::move(given)};
  };
  const Opt tp = opt_of(Setting::kTp), pp = opt_of(Setting::kPp), dp = opt_of(Setting::kDp),
            cp = opt_of(Setting::kCp), ep = opt_of(Setting::kEp),
            batch = opt_of(Setting::kGlobalBatch), sp = opt_of(Setting::kSequenceParallel);
  return {
      plan("dense, tensor and pipeline parallel", model("llama-2-7b", "dgx-a100"),
           {{tp, "2"}, {pp, "4"}, {dp, "2"}, {batch, "32"}, {sp, "on"}}),
      plan("dense, another network and a part", model("llama-2-7b", "dgx-a100"),
           {{dp, "16"},
            {batch, "32"},
            {Opt("--node-gbps"), "200"},
            {opt_of(StackPart::kNormKernel), "torch"}}),
      plan("dense, sequences in parts", model("llama-3-8b", "dgx-h100"),
           {{tp, "2"}, {cp, "2"}, {dp, "4"}, {batch, "16"}, {sp, "on"}, {Opt("--stack"), "nemo"}}),
      plan("dense, ZeRO 3", model("llama-3-8b", "dgx-h100"),
           {{dp, "16"},
            {opt_of(Setting::kZero), "3"},
            {batch, "32"},
            {Opt("--stack"), "torchtitan"}}),
      plan("with dropout", model("bloom-7b1", "jean-zay-a100"),
           {{tp, "2"}, {pp, "2"}, {dp, "4"}, {batch, "64"}, {Opt("--attention-dropout"), "0.1"}}),
      plan("a mixture, experts over ranks and stages", model("mixtral-8x7b", "dgx-h100"),
           {{pp, "2"}, {dp, "8"}, {ep, "8"}, {batch, "64"}}),
      plan("a mixture of many experts", model("qwen3-30b-a3b", "dgx-h100"),
           {{dp, "16"}, {ep, "8"}, {batch, "32"}, {Opt("--stack"), "megatron-core"}}),
      plan("experts that wait for the busiest, multi-token prediction",
           model("deepseek-v3", "dgx-h100"),
           {{pp, "8"}, {dp, "8"}, {ep, "8"}, {batch, "64"}, {Opt("--stack"), "megatron-core"}}),
      plan("a hybrid", model("nemotron-3-nano", "dgx-h100"),
           {{dp, "16"}, {ep, "8"}, {batch, "32"}, {Opt("--stack"), "nemo"}}),
  };
}

}  // namespace tpsim::test
