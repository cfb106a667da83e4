#include "app/reports/brief.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json/json_document.h"
#include "core/scenario/plan_json.h"

namespace tpsim::app {
namespace {

using Object = JsonValue::Object;
using Array = JsonValue::Array;

constexpr std::size_t kMostListed = 3;  // of a list
constexpr std::size_t kMostText = 160;  // bytes of a text
constexpr double kLeastOfStep = 0.02;   // of the step: smaller terms are left out
constexpr std::array<std::string_view, 5> kInEveryPlan = {"tp", "pp", "dp", "zero", "micro_batch"};

double number(const JsonValue* value) {
  if (value == nullptr) return 0;
  if (const auto* whole = value->as<std::int64_t>()) return static_cast<double>(*whole);
  const auto* real = value->as<double>();
  return real != nullptr ? *real : 0;
}

std::string text_of(const JsonValue* value) {
  const auto* text = value != nullptr ? value->as<std::string>() : nullptr;
  return text != nullptr ? *text : "";
}

JsonValue four_digits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

std::string shortened(std::string text) {
  if (text.size() <= kMostText) return text;
  std::size_t end = text.rfind(' ', kMostText);
  if (end == std::string::npos) end = kMostText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // UTF-8
  return text.substr(0, end) + " ...";
}

bool is_scalar(const JsonValue& value) {
  return value.as<Array>() == nullptr && value.as<Object>() == nullptr && !value.is_null();
}

JsonValue scalar(const JsonValue& value) {
  if (const auto* real = value.as<double>()) return four_digits(*real);
  if (const auto* text = value.as<std::string>()) return shortened(*text);
  return value;
}

bool same(const JsonValue& a, const JsonValue& b) { return to_line(a) == to_line(b); }

// The plan that has all settings at their defaults.
const JsonValue& usual_plan() {
  static const JsonValue kUsual = plan_to_json(Plan());
  return kUsual;
}

// Settings in which a plan differs from another one. `always`: settings that are never left out.
JsonValue differences(const JsonValue& run, const JsonValue& from,
                      std::span<const std::string_view> always = {}) {
  JsonValue layout = json_object();
  for (const JsonMember& setting : *usual_plan().as<Object>()) {
    const JsonValue *value = run.find(setting.key), *other = from.find(setting.key);
    if (value == nullptr || !is_scalar(*value)) continue;
    const bool is_named = std::find(always.begin(), always.end(), setting.key) != always.end();
    if (is_named || other == nullptr || !same(*value, *other)) layout.set(setting.key, *value);
  }
  return layout;
}

// "pp=12 dp=8".
std::string layout_text(const JsonValue& layout) {
  std::string text;
  for (const JsonMember& setting : *layout.as<Object>()) {
    const auto* word = setting.value.as<std::string>();
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.key,
                        word != nullptr ? *word : to_line(setting.value));
  }
  return text;
}

bool is_run(const JsonValue& value) {
  const JsonValue* predicted = value.find("predicted");
  return predicted != nullptr && predicted->find("step_s") != nullptr;
}

JsonValue brief_run(const JsonValue& run) {
  const JsonValue& predicted = *run.find("predicted");
  JsonValue brief = json_object({{"layout", differences(run, usual_plan(), kInEveryPlan)}});
  for (const char* key : {"step_s", "step_s_low", "step_s_high", "tokens_per_s", "mfu", "p_oom"}) {
    brief.set(key, four_digits(number(predicted.find(key))));
  }
  const JsonValue* memory = predicted.find("memory_gib");
  brief.set("memory_gib", four_digits(number(memory->find("peak"))));
  brief.set("capacity_gib", four_digits(number(memory->find("capacity"))));
  return brief;
}

JsonValue brief_alternative(const JsonValue& run, const JsonValue& best) {
  return json_object({{"layout", layout_text(differences(run, best))},
                      {"step_s", four_digits(number(run.find("predicted")->find("step_s")))}});
}

// The three longest terms of a plan's step.
JsonValue longest_terms(const JsonValue& run) {
  const JsonValue& predicted = *run.find("predicted");
  Object terms = *predicted.find("breakdown_s")->as<Object>();
  std::stable_sort(terms.begin(), terms.end(), [](const JsonMember& a, const JsonMember& b) {
    return number(&a.value) > number(&b.value);
  });
  JsonValue longest = json_object();
  for (std::size_t i = 0; i < std::min(kMostListed, terms.size()); ++i) {
    const double time = number(&terms[i].value);
    if (time < kLeastOfStep * number(predicted.find("step_s"))) break;
    longest.set(terms[i].key, four_digits(time));
  }
  return longest;
}

// The first elements of a list. Of differences between plans the largest ones, the largest first.
std::vector<const JsonValue*> first_elements(const Array& list) {
  std::vector<const JsonValue*> elements;
  for (const JsonValue& one : list) elements.push_back(&one);
  if (!list.empty() && list.front().find("difference_s") != nullptr) {
    const auto size = [](const JsonValue* one) {
      return std::abs(number(one->find("difference_s")));
    };
    std::stable_sort(elements.begin(), elements.end(),
                     [&](const JsonValue* a, const JsonValue* b) { return size(a) > size(b); });
  }
  elements.resize(std::min(kMostListed, elements.size()));
  return elements;
}

// Any value: scalars, the first elements of lists, and the scalars of objects.
JsonValue brief_value(const JsonValue& value, int depth = 0) {
  if (is_run(value)) return depth == 0 ? brief_run(value) : brief_alternative(value, usual_plan());
  if (is_scalar(value)) return scalar(value);
  JsonValue brief;
  if (const auto* list = value.as<Array>()) {
    for (const JsonValue* element : first_elements(*list)) {
      JsonValue one = brief_value(*element, depth + 1);
      if (!one.is_null()) brief.push(std::move(one));
    }
  } else if (const auto* members = value.as<Object>()) {
    for (const JsonMember& member : *members) {
      if (is_scalar(member.value)) brief.set(member.key, scalar(member.value));
    }
  }
  return brief;
}

// Inputs that nobody stated; null if the report has none.
const Array* open_inputs(const JsonValue& report) {
  const JsonValue* assumed = report.find("assumed");
  const JsonValue* open = assumed != nullptr ? assumed->find("open") : nullptr;
  const auto* inputs = open != nullptr ? open->as<Array>() : nullptr;
  return inputs != nullptr && !inputs->empty() ? inputs : nullptr;
}

double half_width_open(const JsonValue& report) {
  return number(report.find("assumed")->find("half_width_pct_all_open"));
}

// The open input that widens the interval most; null if none widens it by a percent.
const JsonValue* widest_open(const JsonValue& report) {
  const Array* inputs = open_inputs(report);
  if (inputs == nullptr) return nullptr;
  const auto width = [](const JsonValue& one) {
    return number(one.find("half_width_pct_if_stated"));
  };
  const auto widest =
      std::min_element(inputs->begin(), inputs->end(),
                       [&](const JsonValue& a, const JsonValue& b) { return width(a) < width(b); });
  constexpr double kLeastPercent = 1;
  return half_width_open(report) - width(*widest) > kLeastPercent ? &*widest : nullptr;
}

JsonValue assumptions(const JsonValue& report) {
  JsonValue texts;
  const Array* inputs = open_inputs(report);
  if (inputs == nullptr) return texts;
  for (const JsonValue* one : first_elements(*inputs)) {
    texts.push(fmt::format("{} {} ({})", text_of(one->find("what")), text_of(one->find("taken")),
                           text_of(one->find("option"))));
  }
  return texts;
}

std::string next_question(const JsonValue& report) {
  const JsonValue* search = report.find("search");
  const JsonValue* complete = search != nullptr ? search->find("complete") : nullptr;
  if (complete != nullptr && same(*complete, JsonValue(false))) {
    return "search longer: other plans may be better";
  }
  if (const JsonValue* hint = report.find("hint")) return text_of(hint);
  if (const JsonValue* open = widest_open(report)) {
    return fmt::format("state {}: the interval becomes +-{:.0f} % instead of +-{:.0f} %",
                       text_of(open->find("option")),
                       number(open->find("half_width_pct_if_stated")), half_width_open(report));
  }
  const JsonValue* parts = report.find("parts_not_searched");
  const auto* faster = parts != nullptr ? parts->as<Array>() : nullptr;
  if (faster == nullptr || faster->empty()) return "";
  const JsonValue& first = faster->front();
  return fmt::format("search {} too: {:.4g} s", to_line(*first.find("parts")),
                     number(first.find("step_s")));
}

// Adds members as long as there is room for them.
class Room {
 public:
  explicit Room(JsonValue start) : brief_(std::move(start)) {}
  void add(std::string key, JsonValue value) {
    if (value.is_null()) return;
    const auto* text = value.as<std::string>();
    if (text != nullptr && text->empty()) return;
    JsonValue longer = brief_;
    longer.set(std::move(key), std::move(value));
    if (to_line(longer).size() <= kMostBriefBytes) brief_ = std::move(longer);
  }
  bool has(std::string_view key) const { return brief_.find(key) != nullptr; }
  JsonValue take() { return std::move(brief_); }

 private:
  JsonValue brief_;
};

constexpr std::array<std::string_view, 13> kLeftOut = {"terms",
                                                       "version",
                                                       "parameters",
                                                       "active_parameters",
                                                       "profile",
                                                       "search",
                                                       "assumed",
                                                       "plans",
                                                       "plan",
                                                       "parts_searched",
                                                       "held_fixed",
                                                       "stage_layers",
                                                       "parts_not_searched"};

}  // namespace

JsonValue brief_report(const JsonValue& report) {
  Room room(json_object({{"version", "tpsim-brief/1"}, {"of", text_of(report.find("version"))}}));
  for (const char* key : {"model", "cluster", "stack", "gpus", "seq", "none"}) {
    if (const JsonValue* value = report.find(key)) room.add(key, scalar(*value));
  }
  const JsonValue* plans = report.find("plans");
  const auto* list = plans != nullptr ? plans->as<Array>() : nullptr;
  const JsonValue* plan = report.find("plan");
  if (plan == nullptr || !is_run(*plan))
    plan = list != nullptr && !list->empty() ? &list->front() : nullptr;
  if (plan == nullptr && is_run(report)) plan = &report;
  if (plan != nullptr && is_run(*plan)) {
    room.add("best", brief_run(*plan));
    room.add("longest_terms_s", longest_terms(*plan));
  }
  room.add("next", shortened(next_question(report)));
  room.add("assumed", assumptions(report));
  if (list != nullptr && list->size() > 1) {
    JsonValue others;
    for (std::size_t i = 1; i < std::min(kMostListed + 1, list->size()); ++i) {
      if (is_run((*list)[i])) others.push(brief_alternative((*list)[i], *plan));
    }
    room.add("alternatives", std::move(others));
  }
  if (const auto* members = report.as<Object>(); members != nullptr && plan != &report) {
    for (const JsonMember& member : *members) {
      const bool is_left_out =
          std::find(kLeftOut.begin(), kLeftOut.end(), member.key) != kLeftOut.end();
      if (!is_left_out && !room.has(member.key)) room.add(member.key, brief_value(member.value));
    }
  }
  return room.take();
}

}  // namespace tpsim::app
