// Sources: torchtitan/config/manager.py, components/quantization, models/common/config_utils.py and
// models/*/config_registry.py of torchtitan b5bcd76.
#include "frameworks/torchtitan/plan_module.h"

#include <fmt/format.h>

#include <array>

#include "core/base/text.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/torchtitan/titan_options.h"

namespace tpsim {
namespace {

constexpr const char* kModule = "torchtitan_plan";
constexpr std::string_view kStart = "<<'END_OF_MODULE'\n";
constexpr std::string_view kEnd = "END_OF_MODULE\n";

// Any name without a leading underscore is a function of the module: its changes. A dispatcher
// comes before a precision, whose converter replaces it by one that pads tokens. Attention comes
// first.
constexpr std::string_view kText = R"(import functools
import importlib
import sys

from torchtitan.components import quantization as q
from torchtitan.models.common.attention import BaseAttention
from torchtitan.models.common.config_utils import get_attention_config, make_token_dispatcher_config
from torchtitan.models.common.moe import RoutedExperts

LINEAR = ["attention", "delta_net", "shared_experts", "feed_forward"]

def _float8(has_experts, **words):
    yield q.Float8LinearConverter.Config(filter_fqns=["lm_head", "router.gate"], **words)
    if has_experts:
        yield q.Float8GroupedExpertsConverter.Config(**words)

def _mxfp8(has_experts, **words):
    yield q.MXFP8LinearConverter.Config(fqns=LINEAR, **words)
    if has_experts:
        yield q.MXFP8GroupedExpertsConverter.Config(pad_multiple=128, **words)

def _dispatched(experts, backend):
    old = experts.token_dispatcher
    return make_token_dispatcher_config(num_experts=old.num_experts, top_k=old.top_k,
                                        comm_backend=backend,
                                        hidden_dim=experts.inner_experts.dim)

def _changed(names):
    module, name = (sys.argv[sys.argv.index(option) + 1] for option in ("--module", "--config"))
    registry = importlib.import_module(f"torchtitan.models.{module}.config_registry")
    config = getattr(registry, name)()
    spec = config.model_spec
    experts = [found[1] for found in spec.model.traverse(RoutedExperts.Config)]
    compiles = "--compile.enable" in sys.argv
    for change in names:
        if change in ("flex", "varlen"):
            for found in spec.model.traverse(BaseAttention.Config):
                found[1].inner_attention = get_attention_config(change)
            continue
        if change in ("deepep", "hybridep"):
            for one in experts:
                one.token_dispatcher = _dispatched(one, change)
            continue
        for converter in globals()[f"_{change}"](bool(experts), model_compile_enabled=compiles):
            spec.model = converter.build().convert(spec.model)
    return config

def __getattr__(names):
    if names.startswith("_"):
        raise AttributeError(names)
    return functools.partial(_changed, names.split("_"))
)";

struct PrecisionChange {
  Precision precision;
  std::string_view change;
  const char* converter;  // value of --model.converters in former versions
  const char* recipe;     // its recipe_name (docs/float8.md, docs/mxfp8.md)
};
constexpr std::array kPrecisionChanges = {
    PrecisionChange{Precision::kFp8Current, "float8", "quantize.linear.float8", "tensorwise"},
    PrecisionChange{Precision::kMxFp8, "mxfp8", "quantize.linear.mx", "mxfp8_cublas"},
};

struct AttentionChange {
  AttentionKernel kernel;
  std::string_view change;  // backend of get_attention_config()
};
constexpr std::array kAttentionChanges = {AttentionChange{AttentionKernel::kFlex, "flex"},
                                          AttentionChange{AttentionKernel::kFlash3, "varlen"}};

Result<std::string> changes_of_modules(const PlanFile& file) {
  std::string changes;
  const auto dispatcher = file.parts.find(StackPart::kDispatcher);
  if (has_experts(file.model) && dispatcher != file.parts.end()) {
    const auto by = static_cast<Dispatcher>(dispatcher->second);
    if (by == Dispatcher::kDeepEp || by == Dispatcher::kHybridEp) changes = name_of(by);
  }
  if (!changes.empty() && file.plan.degrees.ep == 1) {
    return cannot_express(kTitanStack,
                          fmt::format("the {} dispatcher without expert parallelism", changes),
                          "its experts are then on one rank (torchtitan/models/common/moe.py): use "
                          "--dispatcher alltoall");
  }
  const bool is_deep = changes == name_of(Dispatcher::kDeepEp);
  for (const PrecisionChange& row : kPrecisionChanges) {
    if (file.plan.precision != row.precision) continue;
    if (is_deep) {
      return cannot_express(kTitanStack, "DeepEP with 8-bit experts",
                            "its 8-bit GEMMs need padded tokens, which DeepEP does not return "
                            "(torchtitan/components/quantization/utils.py:33): use --dispatcher "
                            "hybridep");
    }
    changes += fmt::format("{}{}", changes.empty() ? "" : "_", row.change);
    return changes;
  }
  if (file.plan.precision != Precision::kNone || file.plan.fp8_param_gather) {
    return cannot_express(
        kTitanStack, fmt::format("precision {}", name_of(file.plan.precision)),
        "its recipes are fp8-current and mxfp8 (torchtitan/components/quantization)");
  }
  return changes;
}

}  // namespace

Result<std::string> plan_changes(const PlanFile& file) {
  TPSIM_TRY(std::string changes, changes_of_modules(file));
  const auto kernel = file.parts.find(StackPart::kAttentionKernel);
  for (const AttentionChange& row : kAttentionChanges) {
    if (kernel == file.parts.end() || kernel->second != static_cast<std::int64_t>(row.kernel)) {
      continue;
    }
    changes = fmt::format("{}{}{}", row.change, changes.empty() ? "" : "_", changes);
  }
  return changes;
}

std::string plan_module_lines() {
  return fmt::format(
      "# {0}.py changes the configuration that the arguments --module and --config name.\n"
      "# torchtitan has no options for these changes.\n"
      "MODULE_FOLDER=$(mktemp -d)\n"
      "cat > \"$MODULE_FOLDER/{0}.py\" {1}{2}{3}export PYTHONPATH=\"$MODULE_FOLDER:$PYTHONPATH\"\n",
      kModule, kStart, kText, kEnd);
}

std::string_view plan_module_in(std::string_view script) {
  const std::size_t start = script.find(kStart);
  if (start == std::string_view::npos) return "";
  script.remove_prefix(start + kStart.size());
  return script.substr(0, script.find(kEnd));
}

void add_plan_module(const std::string& changes, LaunchOptions& out) {
  out.add("--module", std::string(kModule));
  out.add("--config", changes);
}

void take_plan_module(std::vector<LaunchOption>& options, PartValues& parts) {
  const LaunchOption* const module = find_setting(options, "--module");
  const LaunchOption* const config = find_setting(options, "--config");
  std::string changes;
  if (module != nullptr && module->value == kModule && config != nullptr) changes = config->value;
  if (changes.empty()) return;
  for (const char* name : {"--module", "--config"}) drop_settings(options, name);
  std::string_view rest = changes;
  while (!rest.empty()) {
    const std::string_view change = cut_off(rest, "_");
    for (const PrecisionChange& row : kPrecisionChanges) {
      if (change == row.change) options.push_back({"--model.converters", row.converter});
    }
    for (const AttentionChange& row : kAttentionChanges) {
      if (change != row.change) continue;
      parts[StackPart::kAttentionKernel] = static_cast<std::int64_t>(row.kernel);
    }
    const auto dispatcher = parse_value(row_of(StackPart::kDispatcher), change);
    if (dispatcher.ok()) parts[StackPart::kDispatcher] = *dispatcher;
  }
}

void read_torchtitan_recipe(LaunchOptionReader& in, Plan& plan) {
  const auto converter = in.text("--model.converters");
  for (const PrecisionChange& row : kPrecisionChanges) {
    const std::string option = fmt::format("--{}.recipe_name", row.converter);
    const std::string recipe = in.text(option).value_or(row.recipe);
    if (!converter || *converter != row.converter) continue;
    if (recipe != row.recipe) {
      in.fail(fmt::format("{} is {}, a recipe that tpsim cannot read", option, recipe));
    }
    plan.precision = row.precision;
  }
  if (converter && plan.precision == Precision::kNone) {
    in.fail(fmt::format("--model.converters is '{}'; tpsim reads only {} or {}", *converter,
                        kPrecisionChanges[0].converter, kPrecisionChanges[1].converter));
  }
}

}  // namespace tpsim
