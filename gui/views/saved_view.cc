#include "gui/views/saved_view.h"

#include <type_traits>

#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/model/model_json.h"
#include "core/scenario/plan_json.h"
#include "core/software/field_json.h"

namespace tpsim::gui {
namespace {

constexpr auto kLimitFields = [](auto& io, auto& limits) {
  io.object("asked", [&](auto& inner) { setting_list_fields(inner, limits.asked); });
  SettingLists excluded;
  for (const SettingValue& value : limits.excluded) excluded[value.setting].push_back(value.value);
  io.object("excluded", [&](auto& inner) { setting_list_fields(inner, excluded); });
  if constexpr (std::is_same_v<std::remove_reference_t<decltype(io)>, FieldReader>) {
    for (const SettingRow& row : setting_rows()) {
      for (const std::int64_t value : excluded[row.setting]) {
        limits.excluded.push_back({row.setting, value});
      }
    }
  }
  io.integer("uneven_ends", limits.uneven_ends, {0, 8});
  io.quantity("memory_limit", limits.memory_limit);
  io.number("oom_risk", limits.oom_risk, {0, 1});
};

constexpr auto kChoiceFields = [](auto& io, auto& choice) {
  io.text("model", choice.model);
  io.text("cluster", choice.cluster);
  io.text("profile", choice.profile);
  io.text("stack", choice.stack);
  io.object_if(!choice.parts.empty(), "parts",
               [&](auto& inner) { part_value_fields(inner, choice.parts); });
  io.number("node_gbps", choice.node_gbps, {0, 1e6}, kOptional);
  io.flag("cluster_is_assumed", choice.cluster_is_assumed, kOptional);
  io.flag("stack_is_assumed", choice.stack_is_assumed, kOptional);
  io.integer("gpus", choice.gpus, {1, 1 << 20});
  io.integer("global_batch", choice.global_batch, {0, 1 << 24});  // 0: default of `tpsim plan`
  io.integer("seq", choice.seq, {0, 1 << 30}, kOptional);         // 0: the model's
  io.number("intra_node_factor", choice.intra_node, {0.01, 100});
  io.number("inter_node_factor", choice.inter_node, {0.01, 100});
  io.object_if(choice.limits != SearchLimits(), "search",
               [&](auto& inner) { kLimitFields(inner, choice.limits); });
  io.flag("ignores_stack_limits", choice.ignores_stack_limits, kOptional);
};

constexpr auto kLookFields = [](auto& io, auto& state) {
  io.number("timeline_begin_s", state.timeline.begin, {0, 1e9});
  io.number("timeline_end_s", state.timeline.end, {0, 1e9});
  io.text("timeline_search", state.timeline.search);
  io.flag("critical_path", state.timeline.shows_critical_path);
  io.integer("timeline_stage", state.timeline.stage, {-1, 1 << 20}, kOptional);
  io.text("table_filter", state.table.filter);
  io.number("scale", state.scale, {0, 4});
  io.text("measured_file", state.measured_file);
};

// Returns a plan or model that was just written as a complete file, which the reader of such files
// checks.
JsonValue file_json(const std::string& file) {
  Result<JsonValue> value = parse_json(file, "view");
  TPSIM_CHECK(value.ok(), "a file that was just written");
  return std::move(value).value();
}

Status read_plan_member(const JsonValue& root, const char* key, const std::string& file,
                        std::optional<PlanFile>& plan) {
  const JsonValue* value = root.find(key);
  if (value == nullptr || value->is_null()) return Ok{};
  TPSIM_TRY(plan, parse_plan(to_text(*value), file + ": " + key));
  return Ok{};
}

template <class Spec, class Fields>
Status read_part(const JsonValue& root, const char* key, const std::string& file, Spec& spec,
                 Fields fields) {
  const JsonValue* value = root.find(key);
  if (value == nullptr) {
    return bad_input(std::string("lacks \"") + key + "\"", file,
                     "give a view that tpsim gui saved");
  }
  FieldReader reader(*value, file, std::string(key) + ".");
  fields(reader, spec);
  return reader.finish();
}

}  // namespace

JsonValue view_to_json(const AppState& state, const std::optional<PlanFile>& shown) {
  JsonValue view = json_object({{"format", "tpsim-view/1"},
                                {"choice", json_from_spec(state.choice, kChoiceFields)},
                                {"look", json_from_spec(state, kLookFields)},
                                {"theme", state.theme == Theme::kLight ? "light" : "dark"},
                                {"follows_best", !state.plan.has_value()}});
  if (shown) {
    view.set("plan", file_json(to_json(*shown)));
    if (state.pinned) {
      PlanFile pinned = *shown;
      pinned.plan = *state.pinned;
      view.set("pinned", file_json(to_json(pinned)));
    }
  } else if (state.choice.opened_model) {
    view.set("opened_model", file_json(to_json(*state.choice.opened_model)));
  }
  return view;
}

bool is_view(const JsonValue& root) {
  const JsonValue* format = root.find("format");
  const std::string* name = format != nullptr ? format->as<std::string>() : nullptr;
  return name != nullptr && name->starts_with("tpsim-view/");
}

Status read_view(const JsonValue& root, const std::string& file, AppState& state) {
  AppState next = state;
  next.choice = Choice();
  next.choice.cluster_is_assumed = false;  // default for views of older versions
  TPSIM_TRY_STATUS(read_part(root, "choice", file, next.choice, kChoiceFields));
  TPSIM_TRY_STATUS(read_part(root, "look", file, next, kLookFields));
  std::optional<PlanFile> plan, pinned;
  TPSIM_TRY_STATUS(read_plan_member(root, "plan", file, plan));
  TPSIM_TRY_STATUS(read_plan_member(root, "pinned", file, pinned));
  const JsonValue* theme = root.find("theme");
  const bool is_dark = theme != nullptr && theme->as<std::string>() != nullptr &&
                       *theme->as<std::string>() == "dark";
  next.theme = is_dark ? Theme::kDark : Theme::kLight;
  const JsonValue* follows = root.find("follows_best");
  const bool follows_best =
      follows != nullptr && follows->as<bool>() != nullptr && *follows->as<bool>();
  const JsonValue* model = root.find("opened_model");
  if (model != nullptr && !model->is_null()) {
    TPSIM_TRY(ModelSpec spec, parse_model(to_text(*model), file + ": opened_model"));
    next.choice.opened_model = std::make_shared<const ModelSpec>(std::move(spec));
  }
  if (plan) {
    next.choice.opened_model = std::make_shared<const ModelSpec>(plan->model);
    next.choice.around = plan->plan;
  }
  next.history.clear();
  next.opened_file.clear();  // a view is not a plan file
  next.plan = plan && !follows_best ? std::optional(plan->plan) : std::nullopt;
  next.pinned = pinned ? std::optional(pinned->plan) : std::nullopt;
  state = std::move(next);
  return Ok{};
}

void show_plan(const PlanFile& file, AppState& state) {
  Choice& choice = state.choice;
  choice = Choice();
  choice.model = file.model.name;
  choice.opened_model = std::make_shared<const ModelSpec>(file.model);
  choice.cluster = file.cluster;
  choice.cluster_is_assumed = file.network_assumed;
  choice.profile = file.profile;
  choice.stack = file.stack;
  // Assumed settings widen the prediction interval like assumed software.
  choice.stack_is_assumed = file.stack_assumed || !file.settings_assumed.empty();
  choice.parts = file.parts;
  choice.node_gbps = file.node_gbps;
  choice.gpus = gpu_count(file.plan);
  choice.global_batch = file.plan.global_batch;
  choice.around = file.plan;
  state.plan = file.plan;
  state.pinned.reset();
  state.timeline = TimelineState();
  state.history.clear();
}

}  // namespace tpsim::gui
