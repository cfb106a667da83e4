// Writes and reads options for low-precision recipes (FP8, MXFP8, FP4) of Megatron. Megatron-Bridge
// has the options under other names. Source: Megatron's training/arguments.py and docs on low
// precision.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>

#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

struct Fp8Recipe {
  Precision precision;
  const char* recipe;
  const char* format;  // number format; hybrid: E4M3 in forward, E5M2 in backward
};
constexpr std::array kFp8Recipes = {
    Fp8Recipe{Precision::kFp8, "delayed", "hybrid"},
    Fp8Recipe{Precision::kFp8Current, "tensorwise", "hybrid"},
    Fp8Recipe{Precision::kFp8Block, "blockwise", "e4m3"},
    Fp8Recipe{Precision::kMxFp8, "mxfp8", "e4m3"},
};

// Returns the number format. Scripts state it as "--fp8-format", logs print it as "--fp8", or
// "None".
std::optional<std::string> format_of(LaunchOptionReader& in, const std::string& name) {
  const auto option = in.text(name + "-format"), printed = in.text(name);
  return option || printed.value_or("None") == "None" ? option : printed;
}

}  // namespace

void add_megatron_recipe(const Plan& plan, LaunchOptions& out) {
  for (const Fp8Recipe& row : kFp8Recipes) {
    if (plan.precision != row.precision) continue;
    out.add("--fp8-format", row.format);
    out.add("--fp8-recipe", row.recipe);
  }
  if (plan.precision == Precision::kNvFp4) {
    out.add("--fp4-format", "e2m1");
    out.add("--fp4-recipe", "nvfp4");
  }
  if (plan.fp8_param_gather) out.add("--fp8-param-gather");
}

void read_megatron_recipe(LaunchOptionReader& in, Plan& plan) {
  const auto fp8 = format_of(in, "--fp8");
  const std::string fp8_recipe = in.text("--fp8-recipe").value_or("delayed");
  const auto fp4 = format_of(in, "--fp4");
  const std::string fp4_recipe = in.text("--fp4-recipe").value_or("nvfp4");
  plan.fp8_param_gather = in.flag("--fp8-param-gather");
  if (fp8 && fp4) return in.fail("--fp8-format and --fp4-format exclude each other");
  if (fp4) {
    if (*fp4 != "e2m1" || fp4_recipe != "nvfp4") {
      in.fail(fmt::format("--fp4-format {} with --fp4-recipe {} is not valid; use e2m1 with nvfp4",
                          *fp4, fp4_recipe));
    }
    plan.precision = Precision::kNvFp4;
    return;
  }
  if (!fp8) return;
  if (*fp8 != "hybrid" && *fp8 != "e4m3")
    in.fail(fmt::format("--fp8-format is '{}'; it must be hybrid or e4m3", *fp8));
  for (const Fp8Recipe& row : kFp8Recipes) {
    if (fp8_recipe == row.recipe) plan.precision = row.precision;
  }
  if (plan.precision == Precision::kNone) {
    in.fail(fmt::format("--fp8-recipe is '{}'; it must be delayed, tensorwise, blockwise or mxfp8",
                        fp8_recipe));
  }
}

}  // namespace tpsim
