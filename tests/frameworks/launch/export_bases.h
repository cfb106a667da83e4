// Plans of the models and stacks that each launcher takes, to be exported with other settings and
// parts.
#pragma once

#include <span>
#include <string>

#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim::test {

const Catalogue& catalogue();

// A plan, and a launcher that takes it.
struct ExportBase {
  const char* model;
  const char* stack;
  LaunchStack target;
  const char* settings;  // of the plan: "tp=2,pp=2"
};
std::span<const ExportBase> export_bases();

// A base with some settings and parts of its own.
struct Exported {
  Scenario scenario;
  StackSpec own;
  PlanFile file;
};
// `settings` as those of a base.
Exported exported_of(const ExportBase& base, const std::string& settings, const PartValues& parts);

}  // namespace tpsim::test
