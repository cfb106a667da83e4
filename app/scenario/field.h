// Fields of requests, as errors name them. The command line has an option of the same name, and
// Python a keyword with '_' for '-'.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/enum_words.h"
#include "core/base/result.h"

namespace tpsim {
namespace app {

// Fields except plan settings and software parts, which have tables of their own
// (core/plan/plan_settings.h, core/software/stack_parts.h).
enum class Field : std::uint8_t {
  kModel,
  kCluster,
  kStack,
  kProfile,
  kNodeGbps,
  kNodes,
  kGpus,
  kExclude,
  kMaxMemory,
  kCountEmbedding,
  kSet,
  kAssumptions,
  kDeadline,
  kBudget,
  kRuns,
  kRow,
  kFrom,
  kSeq,
  kSaveStack,
  kSaveCluster,
};

}  // namespace app

template <>
inline constexpr auto kEnumNames<app::Field> = words<20>(
    "model cluster stack profile node-gbps nodes gpus exclude max-memory count-embedding set "
    "assumptions deadline budget runs row from seq save-stack save-cluster");

namespace app {

inline std::string option_of(Field field) { return "--" + std::string(name_of(field)); }

// Returns an error such as "--cluster: the cluster is missing (hint)". `field` is a Field, a
// Setting or a StackPart.
template <class AnyField>
Error field_error(AnyField field, std::string message, std::string hint = "") {
  return bad_input(std::move(message), std::string(option_of(field)), std::move(hint));
}

}  // namespace app
}  // namespace tpsim
