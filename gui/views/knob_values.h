// The values that the window offers for a setting of a plan or a part of the software, with the
// reason why the plan cannot have a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/software/stack_parts.h"

namespace tpsim::gui {

struct KnobValue {
  std::int64_t value = 0;
  std::string text;
  std::string refusal;  // why the plan cannot have the value; empty if it can
};

// Returns the plan after the setting gets the value: dependent settings are adjusted, and the ZeRO
// stage is lowered to one that the software runs, unless the setting is the ZeRO stage.
Plan plan_with(const Plan& plan, const SettingRow& row, std::int64_t value,
               const Scenario& scenario);

// Returns the values of a setting: every word, or the numbers that divide the model and the GPUs.
// Empty for settings that this model does not have.
std::vector<KnobValue> setting_values(const Plan& plan, const SettingRow& row,
                                      const Scenario& scenario);

// Returns the values of a part: its words, usual numbers and the present value. A word of a set
// stands for the set with that word added or removed. Copies the scenario, so call only if the
// values are shown.
std::vector<KnobValue> part_values(const PartRow& row, const Scenario& scenario, const Plan& plan);

// Whether the word of a set is in the value.
bool contains_word(const PartRow& row, std::int64_t value, const FieldWord& word);

}  // namespace tpsim::gui
