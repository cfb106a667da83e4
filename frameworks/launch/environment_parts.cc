#include "frameworks/launch/environment_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/text.h"

namespace tpsim {
namespace {

struct EnvironmentValue {
  StackPart part;
  std::string_view word;   // of the part
  std::string_view names;  // of the variable; the first is written
  std::string_view value;  // of the variable, or one of its values that commas separate
};

constexpr std::string_view kAllocator = "PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF";
constexpr std::string_view kTf32Switch = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE";
constexpr EnvironmentValue kValues[] = {
    {StackPart::kExpandableSegments, "on", kAllocator, "expandable_segments:True"},
    {StackPart::kExpandableSegments, "off", kAllocator, "expandable_segments:False"},
    {StackPart::kBlockingLaunches, "on", "CUDA_LAUNCH_BLOCKING", "1"},
    {StackPart::kFp32Matmul, "tf32", kTf32Switch, "1"},
    {StackPart::kFp32Matmul, "ieee", kTf32Switch, "0"},
};

}  // namespace

bool is_in_environment(StackPart part) {
  return std::any_of(std::begin(kValues), std::end(kValues),
                     [&](const EnvironmentValue& one) { return one.part == part; });
}

void read_variable(std::string_view name, std::string_view value, PartValues& parts) {
  while (!value.empty()) {
    const std::string_view item = cut_off(value, ",");
    for (const EnvironmentValue& one : kValues) {
      if (one.value != item || !matches_any(name, one.names)) continue;
      parts[one.part] = parse_value(row_of(one.part), one.word).value();
    }
  }
}

std::string export_lines(const PartValues& parts) {
  std::string lines;
  for (const EnvironmentValue& one : kValues) {
    const auto found = parts.find(one.part);
    if (found == parts.end() || text_of(row_of(one.part), found->second) != one.word) continue;
    std::string_view names = one.names;
    lines += fmt::format("export {}={}\n", cut_off(names, " "), one.value);
  }
  return lines;
}

}  // namespace tpsim
