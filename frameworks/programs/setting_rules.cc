// Runs the lines "then" of the tables, which frameworks/launch/facts.h describes.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/model/model_json.h"
#include "core/software/optimizer_kinds.h"
#include "frameworks/huggingface/adapter_settings.h"
#include "frameworks/launch/programs.h"

namespace tpsim {
namespace {

using Kind = Expression::Kind;

class RuleRunner final : public Evaluator {
 public:
  RuleRunner(ProgramSettings& settings, LeftSettings& left) : settings_(settings), left_(left) {}

  void run(const std::vector<Statement>& rules) {
    for (const Statement& one : rules) run(one);
  }

  double number(const Expression& one) override {
    if (one.kind == Kind::kCall && one.text == "if") {
      return number(one.arguments[number(one.arguments[0]) != 0 ? 1 : 2]);
    }
    if (one.kind == Kind::kName && settings_.has(one.text)) return count(one.text, 0);
    const TableValue found = value(one);
    return std::holds_alternative<double>(found) ? std::get<double>(found) : 0;
  }

 private:
  double count(const std::string& name, double otherwise) {
    return static_cast<double>(settings_.number(name, static_cast<std::int64_t>(otherwise)));
  }

  TableValue named(const std::string& name) override {
    if (name == "gpus") return static_cast<double>(settings_.gpus());
    if (name == "replicas") return static_cast<double>(settings_.replicas());
    if (name == "program") return settings_.program;
    if (name == "file") return settings_.file;
    const std::string* const found = settings_.find(name);
    if (found == nullptr) return std::string();
    const auto number = parse_number<double>(*found);
    return number ? TableValue(*number) : TableValue(*found);
  }

  TableValue call(const Expression& one) override {
    const std::string& function = one.text;
    const auto& of = one.arguments;
    const std::string& name = of[0].text;
    if (function == "has") {
      const auto& all = settings_.all();
      return double(std::count_if(all.begin(), all.end(), [&](const FlatSetting& setting) {
        return setting.key == name || matches_any(setting.key, name);
      }));
    }
    if (function == "is") return settings_.is(name, of[1].text) ? 1.0 : 0.0;
    if (function == "number") return count(name, number(of[1]));
    if (function == "real") {
      const TableValue found = named(name);
      return std::holds_alternative<double>(found) ? found : number(of[1]);
    }
    if (function == "in") return text(of[1]).find(text(of[0])) == std::string::npos ? 0.0 : 1.0;
    if (function == "packed") return packed(number(of[0]));
    if (function == "after") {
      const std::string whole = text(of[0]);
      return whole.substr(whole.find(of[1].text) + 1);
    }
    if (function == "after_last") {
      const std::string whole = text(of[0]);
      return whole.substr(whole.rfind(of[1].text) + 1);
    }
    if (function == "own_moments") {
      const OptimizerRow* const row = optimizer_called(text(of[0]));
      return row != nullptr && row->moment_bytes > 0 ? 1.0 : 0.0;
    }
    if (function == "targets") {
      std::string modules = text(of[0]);
      std::erase_if(modules, [](char c) { return c == '[' || c == ']' || c == '\'' || c == '"'; });
      std::replace(modules.begin(), modules.end(), ',', ' ');
      if (words_in(modules).empty()) return std::string();
      const auto targets = targets_of_modules(words_in(modules));
      return targets ? text_of(row_of(StackPart::kLoraTargets), *targets) : std::string();
    }
    const bool compares = function == "==" || function == "!=";
    if (compares && of[1].kind == Kind::kNumber) {
      return (number(of[0]) == of[1].number) == (function == "==") ? 1.0 : 0.0;
    }
    return Evaluator::call(one);
  }

  // Returns the largest number of sequences of "@length" tokens that fits in `tokens` and divides
  // the batch of a data-parallel rank; at least 1.
  double packed(double tokens) {
    const auto length = std::max<std::int64_t>(1, settings_.number("@length", 1));
    const std::int64_t of_rank = std::max<std::int64_t>(
        1, settings_.number("@global-batch", 0) / std::max<std::int64_t>(1, settings_.replicas()));
    std::int64_t micro = std::max<std::int64_t>(1, static_cast<std::int64_t>(tokens) / length);
    micro = std::min(micro, of_rank);
    while (micro > 1 && of_rank % micro != 0) --micro;
    return static_cast<double>(micro);
  }

  void run(const Statement& one) {
    const std::size_t arrow = one.text.find(" -> ");
    const std::string before = one.text.substr(0, arrow);
    if (one.verb == "if") {
      if (number(one.expressions.front().second) != 0) run(one.inner);
    } else if (one.verb == "=") {
      assign(one.name, one.expressions.front().second);
    } else if (one.verb == "clear") {
      for (const std::string& name : one.words) drop_settings(settings_.all(), name);
    } else if (one.verb == "note") {
      settings_.note(filled(one.text));
    } else if (one.verb == "ask") {
      settings_.open.ask({filled(before), one.text.substr(arrow + 4)});
    } else if (one.verb == "refuse") {
      left_.refuse(one.name, fmt::format("{}: {}", one.name, text(one.expressions.front().second)),
                   std::string(with_names(one.text)));
    } else {
      run(fact_block(one.name).rules);
    }
  }

  // A name alone copies the text of a setting, if there is one.
  void assign(const std::string& name, const Expression& expression) {
    const bool copies = expression.kind == Kind::kName && settings_.has(expression.text);
    settings_.put(name, copies ? *settings_.find(expression.text) : text(expression));
  }

  ProgramSettings& settings_;
  LeftSettings& left_;
};

void check_expression(const Expression& one) {
  constexpr std::string_view kFunctions =
      "has is number real in packed after after_last own_moments targets";
  const bool is_known = one.kind != Kind::kCall || matches_any(one.text, kFunctions) ||
                        matches_any(one.text, kCommonFunctions);
  TPSIM_CHECK(is_known, "rules of settings: no function " + one.text);
  for (const Expression& argument : one.arguments) check_expression(argument);
}

void check_rule(const Statement& one) {
  TPSIM_CHECK(matches_any(one.verb, "if = clear note ask refuse like"),
              "rules of settings: no statement " + one.verb);
  for (const auto& [name, expression] : one.expressions) check_expression(expression);
  if (one.verb == "like") fact_block(one.name);
  for (const Statement& inner : one.inner) check_rule(inner);
}

}  // namespace

void run_rules(const std::vector<Statement>& rules, ProgramSettings& settings, LeftSettings& left) {
  RuleRunner(settings, left).run(rules);
}

std::vector<std::string> apply_rules(std::string_view table, std::vector<FlatSetting>& settings,
                                     LeftSettings& left) {
  ProgramSettings own;
  own.all() = std::move(settings);
  run_rules(fact_block(table).rules, own, left);
  settings = std::move(own.all());
  return std::move(own.notes);
}

Result<ModelSpec> model_by_rules(std::string_view table, std::vector<FlatSetting> settings,
                                 const std::string& file) {
  LeftSettings left;
  apply_rules(table, settings, left);
  JsonValue root = json_object({}), text = json_object({});
  std::map<std::string, JsonValue> sections;  // "outer.vision_config.depth"
  for (const FlatSetting& one : settings) {
    std::string_view key = one.key;
    const std::string_view place = cut_off(key, ".");
    if (place != "json" && place != "outer") continue;
    const std::size_t dot = key.find('.');
    JsonValue& in =
        dot == key.npos
            ? (place == "json" ? text : root)
            : sections.try_emplace(std::string(key.substr(0, dot)), json_object({})).first->second;
    in.set(std::string(key.substr(dot == key.npos ? 0 : dot + 1)), json_of(one.value));
  }
  if (root.as<JsonValue::Object>()->empty()) return parse_model(to_text(text), file);
  for (auto& [key, section] : sections) root.set(key, std::move(section));
  root.set("text_config", std::move(text));
  return parse_model(to_text(root), file);
}

void check_rules(const std::vector<FactBlock>& blocks) {
  for (const FactBlock& block : blocks) {
    for (const Statement& rule : block.rules) check_rule(rule);
  }
}

}  // namespace tpsim
