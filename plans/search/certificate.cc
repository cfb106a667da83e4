#include "plans/search/certificate.h"

#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/scenario/plan_json.h"
#include "core/software/stack_json.h"

namespace tpsim {

std::string to_json(const SearchSpace& space) {
  JsonValue json = json_object({
      {"gpus", space.gpus},
      {"global_batch", space.global_batch},
      {"objective", name_of(space.objective)},
      {"memory_limit_bytes", space.memory_limit.value()},
      {"oom_risk", space.oom_risk},
      {"uneven_ends", space.uneven_ends},
      {"excluded", to_string(space.excluded)},
  });
  if (space.around) json.set("around", plan_to_json(*space.around));
  for (const SettingRow& row : setting_rows()) {
    if (row.role == SettingRole::kGiven) continue;
    json.set(std::string(row.key), json_array(space.asked[row.setting], [&](std::int64_t value) {
               return JsonValue(text_of(SettingValue{row.setting, value}));
             }));
  }
  return to_text(json);
}

std::uint64_t inputs_hash(const Scenario& scenario, const SearchSpace& space) {
  // Hashes the JSON of the files, so that data that is not in the files does not change the hash.
  std::uint64_t hash = kFnvStart;
  for (const std::string& text :
       {to_json(scenario.model), to_json(scenario.cluster), to_json(scenario.stack),
        to_json(scenario.profile), to_json(space)}) {
    hash = fnv1a(text, hash);
  }
  for (const RankNodes& one : scenario.rank_nodes) {
    if (one.degrees.tp > 0) continue;  // chosen by tpsim
    for (const std::int32_t node : one.node_of) hash = fnv1a(std::to_string(node) + ",", hash);
  }
  return hash;
}

}  // namespace tpsim
