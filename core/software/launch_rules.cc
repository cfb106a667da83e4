// Reads launch_rules.txt, which describes the lines, and evaluates the rules.
#include "core/software/launch_rules.h"

#include <algorithm>
#include <span>

#include "core/base/check.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/software/part_rules.h"

namespace tpsim {

extern const std::span<const unsigned char> kLaunchRules;  // launch_rules.txt

namespace {

void check(bool holds, std::string_view text) {
  TPSIM_CHECK(holds, "launch_rules.txt: cannot read '" + std::string(text) + "'");
}

// Returns the quantity with this name: a setting, a part, or one of rule_quantities.cc.
std::optional<RuleQuantity> quantity_called(std::string_view name) {
  for (const SettingRow& row : setting_rows()) {
    if (row.key == name && !row.is_list()) return RuleQuantity{.of_plan = row.get, .facts = &row};
  }
  for (const PartRow& row : part_rows()) {
    if (row.key == name) return RuleQuantity{.of_stack = row.get, .facts = &row};
  }
  return rule_quantity(name);
}

// Reads a value of `left`: one of its words, a number, or another quantity.
RuleQuantity value_called(std::string_view text, const RuleQuantity& left) {
  if (const auto number = parse_number<std::int64_t>(text)) return {.number = *number};
  if (left.facts != nullptr) {
    const Result<std::int64_t> word = parse_value(*left.facts, text);
    if (word.ok()) return {.number = *word};
  }
  const std::optional<RuleQuantity> other = quantity_called(text);
  check(other.has_value(), text);
  return *other;
}

RuleCondition read_condition(std::string_view text) {
  RuleCondition condition{.left = {}, .comparison = "!=", .values = {{}}};
  const bool is_negated = text.starts_with('!');
  if (is_negated) text.remove_prefix(1);
  constexpr std::string_view kComparisons[] = {"!=", "=", "<", ">", "~"};
  std::string_view name = text;
  for (const std::string_view comparison : kComparisons) {
    const std::size_t at = text.find(comparison);
    if (at == text.npos) continue;
    name = text.substr(0, at);
    condition.comparison = comparison;
    break;
  }
  if (is_negated) condition.comparison = condition.comparison == "~" ? "!~" : "=";
  if (name == "family") {
    condition.patterns = text.substr(name.size() + 1);
    std::replace(condition.patterns.begin(), condition.patterns.end(), '|', ' ');
    return condition;
  }
  const std::optional<RuleQuantity> left = quantity_called(name);
  check(left.has_value(), text);
  condition.left = *left;
  if (name == text) return condition;
  condition.values.clear();
  for (std::string_view values = text.substr(text.find_first_of("=<>~") + 1); !values.empty();) {
    condition.values.push_back(value_called(cut_off(values, "|"), *left));
  }
  return condition;
}

// Reads "NAME=VALUE NAME or NAME: WHAT".
void read_what(std::string_view line, LaunchRule& rule) {
  const std::size_t colon = line.find(": ");
  check(colon != line.npos, line);
  rule.what = line.substr(colon + 2);
  rule.refusal = "the stack cannot run " + rule.what;
  std::vector<RuleCondition>* group = &rule.groups.emplace_back();
  for (std::string_view words = line.substr(0, colon); !words.empty();) {
    const std::string_view word = cut_off(words, " ");
    if (word == "or") {
      group = &rule.groups.emplace_back();
    } else {
      group->push_back(read_condition(word));
    }
  }
}

// Reads "rules SCOPE on GPUS of LAUNCHER...".
LaunchRule read_head(std::string_view line) {
  LaunchRule head{};
  cut_off(line, " ");
  const auto scope = choose("scope", cut_off(line, " "), kEnumNames<RuleScope>);
  check(scope.ok(), line);
  head.scope = static_cast<RuleScope>(*scope);
  if (cut_off(line, " ") == "on") {
    head.gpus = cut_off(line, " ");
    cut_off(line, " ");
  }
  while (!line.empty()) {
    const std::string_view name = cut_off(line, " ");
    if (name == "all") head.launchers = 0xFF;
    for (const Launcher launcher : all_of<Launcher>()) {
      if (name_of(launcher) != name) continue;
      head.launchers |= static_cast<std::uint8_t>(1 << static_cast<int>(launcher));
    }
  }
  return head;
}

std::vector<LaunchRule> read_rules() {
  std::vector<LaunchRule> rules;
  LaunchRule head{};
  std::string_view text{reinterpret_cast<const char*>(kLaunchRules.data()), kLaunchRules.size()};
  while (!text.empty()) {
    const std::string_view line = cut_off(text, "\n");
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("    ")) {
      rules.back().why = trimmed(line);
    } else if (line.starts_with(' ')) {
      read_what(trimmed(line), rules.emplace_back(head));
    } else {
      head = read_head(line);
    }
  }
  return rules;
}

bool concerns_parts(const LaunchRule& rule) { return rule.scope >= RuleScope::kParts; }

std::int64_t number_of(const RuleQuantity& one, const ModelSpec& model, const Plan& plan,
                       const StackSpec* stack) {
  if (one.of_plan != nullptr) return one.of_plan(plan);
  if (one.of_stack != nullptr) return one.of_stack(*stack);
  return one.of_all != nullptr ? one.of_all(model, plan, stack) : one.number;
}

bool holds_for(const RuleCondition& one, const ModelSpec& model, const Plan& plan,
               const StackSpec* stack) {
  if (!one.patterns.empty()) return matches_any(model.family, one.patterns);
  const std::int64_t left = number_of(one.left, model, plan, stack);
  const bool is_negated = one.comparison.front() == '!';
  const char comparison = one.comparison.back();
  for (const RuleQuantity& value : one.values) {
    const std::int64_t right = number_of(value, model, plan, stack);
    const bool is_met = comparison == '<'   ? left < right
                        : comparison == '>' ? left > right
                        : comparison == '~' ? holds(left, right)
                                            : left == right;
    if (is_met) return !is_negated;
  }
  return is_negated;
}

template <class Accept>
const LaunchRule* first_broken(const ModelSpec& model, const Plan& plan, const StackSpec* stack,
                               Accept accepts) {
  for (const LaunchRule& rule : all_launch_rules()) {
    if (accepts(rule) && rule.is_broken(model, plan, stack)) return &rule;
  }
  return nullptr;
}

}  // namespace

bool LaunchRule::is_broken(const ModelSpec& model, const Plan& plan, const StackSpec* stack) const {
  for (const std::vector<RuleCondition>& group : groups) {
    bool is_met = true;
    for (std::size_t i = 0; i < group.size() && is_met; ++i) {
      is_met = holds_for(group[i], model, plan, stack);
    }
    if (is_met) return true;
  }
  return false;
}

const std::vector<LaunchRule>& all_launch_rules() {
  static const std::vector<LaunchRule> kRules = read_rules();
  return kRules;
}

bool is_rule_of(const LaunchRule& rule, Launcher launcher) {
  return (rule.launchers >> static_cast<int>(launcher) & 1) != 0;
}

std::vector<const LaunchRule*> rules_of(Launcher launcher, RuleScope scope) {
  std::vector<const LaunchRule*> rules;
  for (const LaunchRule& rule : all_launch_rules()) {
    if (rule.scope == scope && is_rule_of(rule, launcher)) rules.push_back(&rule);
  }
  return rules;
}

const char* refusal_of(const LaunchRule& rule) { return rule.refusal.c_str(); }

bool supports_gpu(Launcher launcher, std::string_view device) {
  return launcher != Launcher::kNemo || !device.starts_with("AMD");
}

const LaunchRule* broken_rule(Launcher launcher, const ModelSpec& model, const Plan& plan) {
  return first_broken(model, plan, nullptr, [&](const LaunchRule& rule) {
    return !concerns_parts(rule) && is_rule_of(rule, launcher);
  });
}

const LaunchRule* broken_rule(Launcher launcher, RuleScope scope, const ModelSpec& model,
                              const Plan& plan) {
  return first_broken(model, plan, nullptr, [&](const LaunchRule& rule) {
    return rule.scope == scope && is_rule_of(rule, launcher);
  });
}

const LaunchRule* broken_part_rule(const StackSpec& stack, const ModelSpec& model,
                                   const Plan& plan) {
  return first_broken(model, plan, &stack, [&](const LaunchRule& rule) {
    return rule.scope == RuleScope::kParts && is_rule_of(rule, stack.launcher);
  });
}

const LaunchRule* broken_file_rule(Launcher launcher, const StackSpec& stack,
                                   const ModelSpec& model, const Plan& plan, std::string_view gpu) {
  return first_broken(model, plan, &stack, [&](const LaunchRule& rule) {
    return concerns_parts(rule) && is_rule_of(rule, launcher) && gpu.starts_with(rule.gpus);
  });
}

const LaunchRule* part_rule_of(std::string_view refusal) {
  for (const LaunchRule& rule : all_launch_rules()) {
    if (concerns_parts(rule) && rule.refusal == refusal) return &rule;
  }
  return nullptr;
}

}  // namespace tpsim
