// The settings of a run that determine its losses, by name. A saved state contains them.
//
// The parallel layout is not included: a state can be resumed in any layout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

struct RunFact {
  std::string name;  // "lr", "seed", "model.hidden"
  std::string value;
  friend bool operator==(const RunFact&, const RunFact&) = default;
};
using RunFacts = std::vector<RunFact>;

// Prefix of the names of facts about the model.
inline constexpr std::string_view kModelFact = "model.";

// Returns a message for each setting that differs between the saved state and this run: "lr was
// 0.0001 and is now 5".
std::vector<std::string> differences(const RunFacts& saved, const RunFacts& now);
// Error if the saved state belongs to another model than this run's.
Status check_model(const RunFacts& saved, const RunFacts& now);

}  // namespace tpsim
