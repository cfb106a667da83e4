#include "plans/certificate.h"

#include "core/cluster_json.h"
#include "core/json_document.h"
#include "core/model_json.h"
#include "core/profile_json.h"
#include "core/stack_json.h"

namespace tpsim {
namespace {

template <class T>
JsonValue names_of(const std::vector<T>& values) {
  return json_array(values, [](T value) { return JsonValue(name_of(value)); });
}

std::uint64_t hashed(std::uint64_t hash, const std::string& text) {
  // FNV-1a: the same on every machine, and nobody has a reason to forge it.
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace

std::string to_json(const SearchSpace& space) {
  return to_text(json_object({
      {"gpus", space.gpus},
      {"global_batch", space.global_batch},
      {"objective", name_of(space.objective)},
      {"dtype", name_of(space.dtype)},
      {"gradient_dtype", name_of(space.gradient_dtype)},
      {"memory_limit_bytes", space.memory_limit.value()},
      {"oom_risk", space.oom_risk},
      {"tp", json_array(space.tp)},
      {"pp", json_array(space.pp)},
      {"dp", json_array(space.dp)},
      {"cp", json_array(space.cp)},
      {"ep", json_array(space.ep)},
      {"zero", json_array(space.zero)},
      {"micro_batch", json_array(space.micro_batch)},
      {"virtual_stages", json_array(space.virtual_stages)},
      {"recompute", names_of(space.recompute)},
      {"recompute_blocks", json_array(space.recompute_blocks)},
      {"sequence_parallel",
       json_array(space.sequence_parallel, [](bool on) { return JsonValue(on); })},
      {"attention", names_of(space.attention)},
      {"schedule", names_of(space.schedule)},
      {"rank_order", names_of(space.rank_order)},
      {"offload", names_of(space.offload)},
      {"excluded", to_string(space.excluded)},
      {"uneven_ends", space.uneven_ends},
  }));
}

std::uint64_t inputs_hash(const Scenario& scenario, const SearchSpace& space) {
  // The files' own form: what a reader cannot see in them does not change the hash.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::string& text :
       {to_json(scenario.model), to_json(scenario.cluster), to_json(scenario.stack),
        to_json(scenario.profile), to_json(space)}) {
    hash = hashed(hash, text);
  }
  return hash;
}

}  // namespace tpsim
