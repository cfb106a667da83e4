#include "gui/views/search_messages.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <type_traits>

#include "core/json/json_document.h"
#include "core/plan/plan_settings.h"
#include "gui/views/saved_view.h"

namespace tpsim::gui {
namespace {

// The figures of a prediction that searches return, in the order of messages.
template <class Value>  // Prediction or const Prediction
void visit_figures(Value& p, const auto& visit) {
  for (auto* time : {&p.step, &p.step_low, &p.step_high}) visit(*time);
  for (auto* number :
       {&p.hardware_tflops_per_gpu, &p.model_tflops_per_gpu, &p.half_mask_tflops_per_gpu, &p.mfu,
        &p.tokens_per_s, &p.bubble_fraction, &p.p_oom}) {
    visit(*number);
  }
  for (auto* bytes : {&p.capacity, &p.peak, &p.host_memory, &p.host_capacity}) visit(*bytes);
}

double number_of(double value) { return value; }
template <class Quantity>
double number_of(Quantity value) {
  return value.value();
}

// Writes a run as numbers: figures, the settings that are numbers, the blocks of each chunk.
JsonValue json_of(const PlannedRun& run) {
  JsonValue::Array numbers;
  visit_figures(run.predicted,
                [&](const auto& figure) { numbers.emplace_back(number_of(figure)); });
  for (const SettingRow& row : setting_rows()) {
    if (!row.is_list()) numbers.emplace_back(row.get(run.plan));
  }
  for (const std::int64_t blocks : run.plan.stage_layers) numbers.emplace_back(blocks);
  return numbers;
}

// Reads numbers one by one. After the last one it returns 0.
class NumberReader {
 public:
  explicit NumberReader(const JsonValue& value) : all_(value.as<JsonValue::Array>()) {}
  bool has_more() const { return all_ != nullptr && at_ < all_->size(); }
  double next() {
    if (!has_more()) return 0;
    const JsonValue& value = (*all_)[at_++];
    if (const auto* whole = value.as<std::int64_t>()) return static_cast<double>(*whole);
    const auto* number = value.as<double>();
    return number != nullptr ? *number : 0;
  }

 private:
  const JsonValue::Array* all_;
  std::size_t at_ = 0;
};

PlannedRun run_of(const JsonValue& value) {
  PlannedRun run;
  NumberReader reader(value);
  visit_figures(run.predicted, [&](auto& figure) {
    figure = std::remove_reference_t<decltype(figure)>(reader.next());
  });
  for (const SettingRow& row : setting_rows()) {
    if (!row.is_list()) row.set(run.plan, static_cast<std::int64_t>(reader.next()));
  }
  run.plan.stage_layers.clear();
  while (reader.has_more()) {
    run.plan.stage_layers.push_back(static_cast<std::int64_t>(reader.next()));
  }
  return run;
}

JsonValue json_of(const Error& error) {
  return json_object({{"kind", static_cast<int>(error.kind)},
                      {"message", error.message},
                      {"where", error.where},
                      {"hint", error.hint}});
}

std::string text_in(const JsonValue& object, const char* key) {
  const JsonValue* value = object.find(key);
  const auto* text = value != nullptr ? value->as<std::string>() : nullptr;
  return text != nullptr ? *text : "";
}

std::int64_t integer_in(const JsonValue& object, const char* key) {
  const JsonValue* value = object.find(key);
  const auto* whole = value != nullptr ? value->as<std::int64_t>() : nullptr;
  return whole != nullptr ? *whole : 0;
}

Error error_of(const JsonValue& value) {
  return Error{static_cast<ErrorKind>(integer_in(value, "kind")), text_in(value, "message"),
               text_in(value, "where"), text_in(value, "hint")};
}

}  // namespace

// A request is a saved view without a display.
std::string request_of(const Choice& choice) {
  AppState state;
  state.choice = choice;
  std::optional<PlanFile> around;
  if (choice.around && choice.opened_model) {
    around.emplace();
    around->model = *choice.opened_model;
    around->cluster = choice.cluster;
    around->profile = choice.profile;
    around->stack = choice.stack;
    around->plan = *choice.around;
  }
  return to_line(view_to_json(state, around));
}

Result<Choice> choice_of(std::string_view request) {
  TPSIM_TRY(const JsonValue root, parse_json(request, "request"));
  AppState state;
  TPSIM_TRY_STATUS(read_view(root, "request", state));
  return std::move(state.choice);
}

std::string message_of(const SearchNews& news) {
  JsonValue message = json_object({{"considered", news.considered}, {"is_last", news.is_last}});
  JsonValue pruned = json_object();
  for (const auto& [reason, count] : news.pruned) pruned.set(reason, count);
  message.set("pruned", std::move(pruned));
  message.set("plans", json_array(news.plans, [](const PlannedRun& run) { return json_of(run); }));
  if (news.nearest_miss) message.set("nearest_miss", json_of(*news.nearest_miss));
  if (news.error) message.set("error", json_of(*news.error));
  return to_line(message);
}

SearchNews news_of(std::string_view message) {
  SearchNews news;
  const Result<JsonValue> parsed = parse_json(message, "search");
  if (!parsed.ok()) {
    news.error = parsed.error();
    news.is_last = true;
    return news;
  }
  const JsonValue& root = *parsed;
  news.considered = integer_in(root, "considered");
  const JsonValue* is_last = root.find("is_last");
  news.is_last = is_last != nullptr && is_last->as<bool>() != nullptr && *is_last->as<bool>();
  if (const JsonValue* pruned = root.find("pruned")) {
    if (const auto* members = pruned->as<JsonValue::Object>()) {
      for (const JsonMember& one : *members)
        news.pruned[one.key] = integer_in(*pruned, one.key.c_str());
    }
  }
  if (const JsonValue* plans = root.find("plans")) {
    if (const auto* all = plans->as<JsonValue::Array>()) {
      std::transform(all->begin(), all->end(), std::back_inserter(news.plans), run_of);
    }
  }
  if (const JsonValue* miss = root.find("nearest_miss")) news.nearest_miss = run_of(*miss);
  if (const JsonValue* error = root.find("error")) news.error = error_of(*error);
  return news;
}

}  // namespace tpsim::gui
