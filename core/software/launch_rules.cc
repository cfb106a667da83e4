#include "core/software/launch_rules.h"

#include <map>
#include <string>

#include "core/software/launch_rule_tables.h"

namespace tpsim {
namespace {

const std::vector<const LaunchRule*>& all_rules() {
  static const std::vector<const LaunchRule*> rules = [] {
    std::vector<const LaunchRule*> all;
    for (const auto table :
         {launch_rule_tables::megatron_rules(), launch_rule_tables::torch_rules()}) {
      for (const LaunchRule& rule : table) all.push_back(&rule);
    }
    return all;
  }();
  return rules;
}

bool is_of(const LaunchRule& rule, Launcher launcher) {
  return (rule.launchers & launch_rule_tables::launcher_bit(launcher)) != 0;
}

}  // namespace

std::vector<const LaunchRule*> rules_of(Launcher launcher, RuleScope scope) {
  std::vector<const LaunchRule*> rules;
  for (const LaunchRule* const rule : all_rules()) {
    if (rule->scope == scope && is_of(*rule, launcher)) rules.push_back(rule);
  }
  return rules;
}

const char* refusal_of(const LaunchRule& rule) {
  static const std::map<const LaunchRule*, std::string> texts = [] {
    std::map<const LaunchRule*, std::string> all;
    for (const LaunchRule* const one : all_rules()) {
      all.emplace(one, "the stack cannot run " + std::string(one->what));
    }
    return all;
  }();
  return texts.at(&rule).c_str();
}

bool supports_gpu(Launcher launcher, std::string_view device) {
  return launcher != Launcher::kNemo || !device.starts_with("AMD");
}

const LaunchRule* broken_rule(Launcher launcher, const ModelSpec& model, const Plan& plan) {
  for (const LaunchRule* const rule : all_rules()) {
    if (is_of(*rule, launcher) && rule->is_broken(model, plan)) return rule;
  }
  return nullptr;
}

const LaunchRule* broken_rule(Launcher launcher, RuleScope scope, const ModelSpec& model,
                              const Plan& plan) {
  for (const LaunchRule* const rule : all_rules()) {
    if (rule->scope == scope && is_of(*rule, launcher) && rule->is_broken(model, plan)) return rule;
  }
  return nullptr;
}

}  // namespace tpsim
