#include "gui/views/facts.h"

#include <fmt/format.h>

#include "app/answers/term_texts.h"
#include "core/base/text.h"
#include "gui/views/answer.h"
#include "gui/views/breakdown.h"
#include "gui/views/differences.h"
#include "gui/views/plan_table.h"

namespace tpsim::gui {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

void add_plan_facts(Facts& all, const std::string& of, const PlanView& view) {
  const Plan& plan = view.plan;
  const auto add = [&](const char* name, std::string value) {
    all.emplace_back(of + "." + name, std::move(value));
  };
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for == nullptr) add(row.key.data(), text_of(plan, row.setting));
  }
  add("runs", view.error ? "no" : "yes");
  add("error", view.error ? view.error->message : "");
  if (view.error) return;
  add("step_s", fmt::format("{:.4g}", view.predicted.step.value()));
  add("step_low_s", fmt::format("{:.4g}", view.predicted.step_low.value()));
  add("step_high_s", fmt::format("{:.4g}", view.predicted.step_high.value()));
  add("memory_gib", fmt::format("{:.4g}", view.predicted.peak.value() / kGiB));
  add("p_oom", fmt::format("{:.3f}", view.predicted.p_oom));
  add("bubble_pct", fmt::format("{:.1f}", 100 * bubble_share(view.predicted)));
  add("spans", std::to_string(view.timeline.spans.size()));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> facts(const AppState& state, const Views& views) {
  Facts all;
  const auto add = [&](const char* name, std::string value) {
    all.emplace_back(name, std::move(value));
  };
  add("model", views.scenario ? views.scenario->model.name : "");
  add("cluster", state.choice.cluster);
  add("gpus", std::to_string(state.choice.gpus));
  add("global_batch", std::to_string(views.global_batch));
  add("software", views.names.stack + (views.unstated.software ? ", assumed" : ""));
  add("node_gbps", fmt::format("{:.6g}", views.names.node_gbps));
  add("intra_node", fmt::format("{:.2f}", state.choice.intra_node));
  add("inter_node", fmt::format("{:.2f}", state.choice.inter_node));
  add("theme", state.theme == Theme::kLight ? "light" : "dark");
  add("error", views.error ? "yes" : "no");
  add("searching", views.is_searching ? "yes" : "no");
  add("plans", std::to_string(views.found.plans.size()));
  add("considered", std::to_string(views.found.considered));
  add("layouts", std::to_string(layout_groups(views.found.plans, state.table).size()));
  add("front", std::to_string(views.found.pareto_front.size()));
  add("chosen", state.plan ? "yes" : "no");
  add("pinned", state.pinned ? "yes" : "no");
  add("moved", joined_text(state.moved, " ", [](const MovedSetting& one) {
        return std::string(row_of(one.setting).key);
      }));
  add("focus", state.focused);
  add("export", std::to_string(state.export_stack));
  add("seq", std::to_string(views.scenario ? views.scenario->model.seq : 0));
  add("filter", state.table.filter);
  add("timeline.begin", fmt::format("{:.4g}", state.timeline.begin));
  add("timeline.end", fmt::format("{:.4g}", state.timeline.end));
  add("timeline.hovered", state.timeline.hovered);
  add("timeline.stage", views.bands ? std::to_string(views.bands->stage) : "none");
  add("timeline.critical", state.timeline.shows_critical_path ? "yes" : "no");
  add("measured", views.measured ? std::to_string(views.measured->rows.size()) : "0");
  if (views.measured) {
    add("measured.rows", std::to_string(views.measured->tested.rows));
    add("measured.error_pct", fmt::format("{:.2f}", 100 * views.measured->tested.mean_error));
    add("measured.coverage_pct", fmt::format("{:.1f}", 100 * views.measured->tested.coverage));
  }
  const Answer answer = answer_of(views);
  add("answer.use", answer.use);
  add("answer.cost", answer.cost);
  add("answer.setup", answer.setup);
  add("answer.assumed", answer.assumed);
  add("answer.others", answer.others);
  add("notice", state.notice);
  if (views.a) add_plan_facts(all, "plan", *views.a);
  if (views.b) add_plan_facts(all, "other", *views.b);
  if (views.a && !views.a->error) {
    const Term* term = largest_communication(views.a->predicted);
    add("communication.term", term == nullptr ? "" : std::string(name_of(term->kind)));
    add("communication.link",
        term == nullptr ? ""
                        : app::term_text(*views.a->scenario, views.a->plan, views.a->predicted,
                                         views.a->costs.transfer, term->kind)
                              .inputs);
  }
  if (views.a && views.b && !views.a->error && !views.b->error) {
    const auto terms = largest_differences(views.a->predicted, views.b->predicted);
    add("difference.term", terms.empty() ? "" : terms.front().name);
    add("difference.s",
        fmt::format("{:.4g}", (views.b->predicted.step - views.a->predicted.step).value()));
  }
  return all;
}

}  // namespace tpsim::gui
