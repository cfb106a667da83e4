// The settings of a run that determine its losses, by name. A saved state contains them.
//
// The layout is not included: a state can be resumed in any layout.
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

// Facts about the model have names that begin so.
inline constexpr std::string_view kModelFact = "model.";

// In words, what is another for a run than for the state it would go on from: "lr 0.0001, now 5".
std::vector<std::string> differences(const RunFacts& saved, const RunFacts& now);
// An error when the state is that of another model: its weights would mean nothing here.
Status check_model(const RunFacts& saved, const RunFacts& now);

}  // namespace tpsim
