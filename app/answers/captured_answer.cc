#include "app/answers/captured_answer.h"

#include "core/captured/scaled_step.h"
#include "core/machine/node_rate.h"
#include "core/scenario/catalogue.h"

namespace tpsim::app {
namespace {

constexpr const char* kPlainStack = "pytorch";

template <class T>
Result<T> named(Result<T> loaded, const char* option) {
  if (loaded.ok() || !loaded.error().where.empty()) return loaded;
  Error error = loaded.error();
  error.where = option;
  return error;
}

}  // namespace

Result<CapturedAnswer> captured_answer(const CapturedRequest& request) {
  TPSIM_TRY(CapturedStep step, read_captured_step(request.path));
  return captured_answer(request, std::move(step));
}

Result<CapturedAnswer> captured_answer(const CapturedRequest& request, CapturedStep step) {
  CapturedAnswer answer{std::move(step), {}, {}};
  if (request.ranks > 0) {
    TPSIM_TRY(answer.step, with_ranks(std::move(answer.step), request.ranks));
  }
  TPSIM_TRY(answer.step, with_accumulation(std::move(answer.step), request.micro_batches));
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  if (request.cluster.empty()) {
    return bad_input("the cluster is missing", "--cluster", "tpsim list clusters");
  }
  CapturedMachine& machine = answer.machine;
  TPSIM_TRY(ClusterSpec cluster, named(catalogue.load_cluster(request.cluster), "--cluster"));
  if (request.node_gbps > 0) cluster = with_node_rate(std::move(cluster), request.node_gbps);
  machine.cluster = std::move(cluster);
  TPSIM_TRY(machine.profile,
            named(catalogue.load_profile(request.profile.empty() ? machine.cluster.profile
                                                                 : request.profile),
                  "--profile"));
  TPSIM_TRY(
      machine.stack,
      named(catalogue.load_stack(request.stack.empty() ? kPlainStack : request.stack), "--stack"));
  TPSIM_TRY(answer.predicted, predict_captured(answer.step, machine));
  return answer;
}

}  // namespace tpsim::app
