// What the experts of a block cost beyond their products: tokens on their way to the ranks of their
// experts and back, the launches around that, the rank that got the most of them.
//
// Where copies of tokens travel, for T tokens of a rank, k experts of E for each, R ranks on N
// nodes (NVLink domains):
//   all-gather  every token to every rank;
//   all-to-all  k copies of a token, wherever their experts are;
//   DeepEP and HybridEP  one copy to every other node that has any of a token's experts, and from
//     there one to every rank that has: with choices drawn without preference E (1 - C(E - E/n, k)
//     / C(E, k)) / E of n equal parts are reached (hypergeometric), at most those of the groups
//     that a router keeps. Both ways go on side by side; the slower counts.
// Their kernels copy with some of the GPU's processors, each at a rate of its own: docs/experts.md.
#pragma once

#include <string>

#include "core/plan/plan.h"
#include "core/program/program.h"
#include "core/scenario/scenario.h"
#include "costs/collective_cost.h"

namespace tpsim {

// Tokens of the group's busiest rank over the mean, for every layer and micro-batch: 1 or more.
// Without a stated load shares of experts differ as routers with an auxiliary loss leave them; with
// counts it is the mean over their blocks, in each of which all wait for that block's busiest rank.
double busiest_load(const StackSpec& stack, const ModelSpec& model, const Plan& plan);

// An error where the software takes counts that the model does not have.
Status check_load(const StackSpec& stack, const ModelSpec& model);

// Consecutive experts on each of the ranks, with the tokens that the model's counts say.
double counted_load(const ExpertShape& experts, std::int64_t ranks);

// The same where experts' shares of the tokens have this standard deviation over their mean.
double busiest_load(const ModelSpec& model, const Plan& plan, double spread);

// Of `parts` equal ones that share the experts, how many hold any of a token's: the expectation, of
// the groups that the router keeps where it keeps some.
double expected_destinations(const ExpertShape& experts, std::int64_t parts);

// Dispatch or combine: `record` is the program's all-to-all over the expert group, whose bytes are
// those of the k copies of a rank's tokens.
Seconds dispatch_time(const Scenario& scenario, const CollectiveCostModel& collectives,
                      const CollectiveRecord& record, const GroupPlacement& group);

// The same in words: what travels, how often, with what kernels.
std::string explain_dispatch(const Scenario& scenario, const CollectiveCostModel& collectives,
                             const CollectiveRecord& record, const GroupPlacement& group);

// Grows what a program allocates for tokens that other ranks sent, where none are dropped.
void grow_arrivals(Program& program, const ModelSpec& model, double load);

// Works on tokens of other ranks, as many as were sent here.
bool waits_for_busiest(const Label& label);

// The same token is not copied for each of its experts before it is sent, nor after it came back.
bool is_left_to_dispatcher(const OpRecord& op, const StackSpec& stack);

}  // namespace tpsim
