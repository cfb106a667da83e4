// Reads launch_rules.txt, which describes the lines, and evaluates the rules.
#include "core/software/launch_rules.h"

#include <algorithm>
#include <array>
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
    if (row.key == name && !row.is_list()) {
      return RuleQuantity{.of_plan = row.get, .facts = &row, .reads_plan = true};
    }
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
  using enum RuleCondition::Comparison;
  struct Word {
    std::string_view text;
    RuleCondition::Comparison comparison;
    bool is_negated;
  };
  static constexpr Word kWords[] = {{"!=", kEqual, true},
                                    {"=", kEqual, false},
                                    {"<", kLess, false},
                                    {">", kGreater, false},
                                    {"~", kHolds, false}};
  // A name alone: the quantity is not 0.
  RuleCondition condition{.left = {}, .is_negated = true, .values = {{}}};
  const bool is_negated = text.starts_with('!');
  if (is_negated) text.remove_prefix(1);
  std::string_view name = text;
  for (const Word& word : kWords) {
    const std::size_t at = text.find(word.text);
    if (at == text.npos) continue;
    name = text.substr(0, at);
    condition.comparison = word.comparison;
    condition.is_negated = word.is_negated;
    break;
  }
  condition.is_negated ^= is_negated;
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
    if (name == "all") {
      head.launchers = 0xFF;
      continue;
    }
    const auto launcher = choose("launcher", name, kEnumNames<Launcher>);
    check(launcher.ok(), name);
    head.launchers |= static_cast<std::uint8_t>(1 << *launcher);
  }
  return head;
}

std::vector<LaunchRule> read_rules() {
  std::vector<LaunchRule> rules;
  LaunchRule head{};
  std::string_view text = as_text(kLaunchRules);
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
  using enum RuleCondition::Comparison;
  const std::int64_t left = number_of(one.left, model, plan, stack);
  for (const RuleQuantity& value : one.values) {
    const std::int64_t right = number_of(value, model, plan, stack);
    const bool is_met = one.comparison == kEqual     ? left == right
                        : one.comparison == kLess    ? left < right
                        : one.comparison == kGreater ? left > right
                                                     : holds(left, right);
    if (is_met) return !one.is_negated;
  }
  return one.is_negated;
}

const LaunchRule* first_broken(const std::vector<const LaunchRule*>& rules, const ModelSpec& model,
                               const Plan& plan, const StackSpec* stack) {
  for (const LaunchRule* rule : rules) {
    if (rule->is_broken(model, plan, stack)) return rule;
  }
  return nullptr;
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

bool LaunchRule::may_break(const ModelSpec& model, const StackSpec& stack) const {
  const auto reads_plan = [](const RuleCondition& one) {
    return one.left.reads_plan || std::any_of(one.values.begin(), one.values.end(),
                                              [](const auto& value) { return value.reads_plan; });
  };
  return std::any_of(groups.begin(), groups.end(), [&](const std::vector<RuleCondition>& group) {
    return std::all_of(group.begin(), group.end(), [&](const RuleCondition& one) {
      return reads_plan(one) || holds_for(one, model, Plan(), &stack);
    });
  });
}

const std::vector<LaunchRule>& all_launch_rules() {
  static const std::vector<LaunchRule> kRules = read_rules();
  return kRules;
}

bool is_rule_of(const LaunchRule& rule, Launcher launcher) {
  return (rule.launchers >> static_cast<int>(launcher) & 1) != 0;
}

const std::vector<const LaunchRule*>& rules_of(Launcher launcher, RuleScope scope) {
  using OfLauncher =
      std::array<std::vector<const LaunchRule*>, kEnumNames<RuleScope>.size()>;  // by scope
  static const std::array<OfLauncher, kEnumNames<Launcher>.size()> kLists = [] {
    std::array<OfLauncher, kEnumNames<Launcher>.size()> lists;
    for (const LaunchRule& rule : all_launch_rules()) {
      for (std::size_t i = 0; i < lists.size(); ++i) {
        if (!is_rule_of(rule, static_cast<Launcher>(i))) continue;
        lists[i][static_cast<std::size_t>(rule.scope)].push_back(&rule);
      }
    }
    return lists;
  }();
  return kLists[static_cast<std::size_t>(launcher)][static_cast<std::size_t>(scope)];
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
  return first_broken(rules_of(launcher, scope), model, plan, nullptr);
}

const LaunchRule* broken_part_rule(const StackSpec& stack, const ModelSpec& model,
                                   const Plan& plan) {
  return first_broken(rules_of(stack.launcher, RuleScope::kParts), model, plan, &stack);
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
