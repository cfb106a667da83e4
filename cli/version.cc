#include "cli/version.h"

#include <fmt/format.h>

#include "generated/tpsim_config.h"

namespace tpsim::cli {

std::string version_text() {
  std::string text = fmt::format("tpsim {} ({}, {})\n", kVersion, kBuildType, kCompiler);
  for (const BuiltFeature& feature : kBuiltFeatures) {
    text += fmt::format("  {:<7} {}\n", fmt::format("{}:", feature.name), feature.state);
  }
  return text;
}

}  // namespace tpsim::cli
