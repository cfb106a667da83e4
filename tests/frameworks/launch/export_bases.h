// Plans for every launcher, with a model and stack that it supports. Tests export them with other
// settings and parts.
#pragma once

#include <span>
#include <string>

#include "core/scenario/catalogue.h"
#include "core/scenario/plan_file.h"
#include "core/scenario/scenario.h"
#include "frameworks/launch/launch_stack.h"

namespace tpsim::test {

const Catalogue& catalogue();

// A model, a stack, and a launcher that supports both.
struct ExportBase {
  const char* model;
  const char* stack;
  LaunchStack target;
  const char* settings;  // of the plan: "tp=2,pp=2"
};
std::span<const ExportBase> export_bases();

// A base with changed settings and parts.
struct Exported {
  Scenario scenario;
  StackSpec own;
  PlanFile file;
};
// Applies `settings` (format as in ExportBase) and `parts` to a base.
Exported exported_of(const ExportBase& base, const std::string& settings, const PartValues& parts);

}  // namespace tpsim::test
