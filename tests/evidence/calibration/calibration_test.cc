// Calibration on steps that were simulated with one changed constant. The fit recovers this
// constant and hardly moves others.
#include "evidence/calibration/calibration.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "evidence/calibration/contradictions.h"
#include "evidence/calibration/nccl_tests.h"
#include "evidence/calibration/robust_fit.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

Scenario starting_point() {
  Scenario scenario = test::small_scenario(test::small_llama());
  scenario.stack.rank_jitter = 0.005;
  return scenario;
}

// Layouts with different bottlenecks.
std::vector<Plan> layouts(const ModelSpec& model) {
  std::vector<Plan> plans;
  for (const std::int64_t batch : {16, 64}) {
    for (const ParallelDegrees& degrees :
         {ParallelDegrees{.tp = 1, .pp = 1, .dp = 8}, ParallelDegrees{.tp = 1, .pp = 1, .dp = 16},
          ParallelDegrees{.tp = 2, .pp = 1, .dp = 8}, ParallelDegrees{.tp = 4, .pp = 1, .dp = 4},
          ParallelDegrees{.tp = 2, .pp = 2, .dp = 4}, ParallelDegrees{.tp = 1, .pp = 2, .dp = 8}}) {
      plans.push_back(test::plan_of(model, degrees, batch));
    }
  }
  return plans;
}

std::vector<MeasuredStep> steps_of(const Scenario& truth, const Scenario& believed) {
  std::vector<MeasuredStep> steps;
  for (const Plan& plan : layouts(truth.model)) {
    const Result<Prediction> ran = simulate(truth, plan);
    REQUIRE(ran.ok());
    steps.push_back({short_name(plan), believed, {}, plan, ran->step});
  }
  return steps;
}

const FittedConstant& constant_called(const Calibration& found, std::string_view key) {
  for (const FittedConstant& fitted : found.constants) {
    if (fitted.constant->key == key) return fitted;
  }
  FAIL("no constant " << key);
  return found.constants.front();
}

struct Change {
  const char* key;
  void (*apply)(Scenario&);
};

}  // namespace

TEST_CASE("a row that contradicts the others is named, rows that scatter are not") {
  std::vector<FittedStep> steps;
  for (const double ratio : {1.02, 0.97, 1.01, 0.99, 1.03, 0.98}) {
    steps.push_back({"row", ratio, 1, 1, 1});
  }
  CHECK(contradicting_steps(steps).empty());
  steps[3].measured = 1.4;
  CHECK(contradicting_steps(steps) == std::vector<std::size_t>{3});
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].measured = i % 2 == 0 ? 1.3 : 0.7;
  CHECK(contradicting_steps(steps).empty());
  steps.resize(3);
  steps[2].measured = 9;
  CHECK(contradicting_steps(steps).empty());
}

TEST_CASE("Calibration finds the changed constant and leaves others") {
  const Change changes[] = {
      {"inter_node.efficiency", [](Scenario& s) { s.cluster.inter_node.efficiency *= 0.5; }},
      {"host.per_step", [](Scenario& s) { s.stack.host.per_step += Seconds(0.02); }}};
  for (const Change& change : changes) {
    INFO(change.key);
    const Scenario believed = starting_point();
    Scenario truth = believed;
    change.apply(truth);
    const Result<Calibration> found = calibrate(steps_of(truth, believed), {});
    REQUIRE(found.ok());
    CHECK(found->error_before() > 0.03);
    CHECK(found->error_after() < 0.2 * found->error_before());
    CHECK(found->error_left_out() < 0.5 * found->error_before());
    CHECK(found->parts.empty());
    const FittedConstant& moved = constant_called(*found, change.key);
    const double wanted = moved.constant->value(truth);
    CHECK(std::fabs(moved.after - moved.before) > 0.6 * std::fabs(wanted - moved.before));
    const double own = std::fabs(moved.moved) / moved.constant->spread;
    for (const FittedConstant& other : found->constants) {
      if (other.constant == moved.constant) continue;
      INFO(other.constant->key);
      CHECK(std::fabs(other.moved) / other.constant->spread < 0.7 * own);
    }
  }
}

TEST_CASE("Steps as predicted move nothing") {
  const Scenario believed = starting_point();
  const Result<Calibration> found = calibrate(steps_of(believed, believed), {});
  REQUIRE(found.ok());
  for (const FittedConstant& fitted : found->constants) {
    CHECK(std::fabs(fitted.moved) < 0.02 * fitted.constant->spread);
  }
}

TEST_CASE("Constants move less if left-out rows are not predicted better") {
  const Scenario believed = starting_point();
  std::vector<MeasuredStep> steps = steps_of(believed, believed);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].measured *= i % 2 == 0 ? 1.1 : 0.9;
  const Result<Calibration> found = calibrate(steps, {});
  REQUIRE(found.ok());
  CHECK(found->shrinkage < 1);
  CHECK(found->error_left_out() <= 1.0001 * found->error_before());
}

TEST_CASE("One run on a bad node moves constants little") {
  const Scenario believed = starting_point();
  std::vector<MeasuredStep> steps = steps_of(believed, believed);
  steps[3].measured *= 1.6;
  const Result<Calibration> found = calibrate(steps, {});
  REQUIRE(found.ok());
  for (std::size_t i = 0; i < found->steps.size(); ++i) {
    CHECK(found->steps[i].after / found->steps[i].before == Approx(1).margin(0.03));
  }
}

TEST_CASE("A part that the rows state is not inferred") {
  const Scenario believed = starting_point();
  Scenario truth = believed;
  row_of(StackPart::kNormKernel).set(truth.stack, static_cast<int>(KernelFusion::kTorch));
  truth.stack.host.per_op = Seconds(1e-7);
  Scenario fast_host = believed;
  fast_host.stack.host.per_op = Seconds(1e-7);
  std::vector<MeasuredStep> steps = steps_of(truth, fast_host);
  for (MeasuredStep& step : steps) {
    step.stated[StackPart::kNormKernel] = static_cast<int>(KernelFusion::kFused);
  }
  const Result<Calibration> stated = calibrate(steps, {});
  REQUIRE(stated.ok());
  for (const FittedPart& part : stated->parts) CHECK(part.part != StackPart::kNormKernel);
}

TEST_CASE("A part that some rows state is inferred for the others if they agree") {
  const Scenario believed = starting_point();
  Scenario blocked = believed;
  row_of(StackPart::kBlockingLaunches).set(blocked.stack, 1);
  for (const bool all_block : {true, false}) {
    INFO(all_block);
    std::vector<MeasuredStep> steps = steps_of(all_block ? blocked : believed, believed);
    const std::vector<MeasuredStep> as_blocked = steps_of(blocked, blocked);
    for (std::size_t i = 0; i < steps.size(); i += 2) {
      steps[i] = as_blocked[i];
      steps[i].stated[StackPart::kBlockingLaunches] = 1;
    }
    const Result<Calibration> found = calibrate(steps, {});
    REQUIRE(found.ok());
    const bool took = std::any_of(found->parts.begin(), found->parts.end(), [](const auto& part) {
      return part.part == StackPart::kBlockingLaunches && part.after == 1;
    });
    CHECK(took == all_block);
  }
}

TEST_CASE("A constant without effect on the rows keeps its prior and its error") {
  LinearProblem problem;
  problem.spreads = {0.3, 0.5};
  problem.at = {0, 0};
  for (int i = 0; i < 20; ++i) problem.rows.push_back({0.1, {1.0, 0.0}});
  const RobustFit fit = robust_fit(problem);
  CHECK(fit.unknowns[0] == Approx(0.1).margin(0.01));
  CHECK(fit.unknowns[1] == 0);
  CHECK(fit.errors[1] == Approx(0.5));
  CHECK(fit.errors[0] < 0.02);
}

namespace {

// A test of nccl-tests: its columns redop and root, and bus over algorithm bandwidth for n ranks.
struct PrintedTest {
  const char* redop = "sum";
  int root = -1;
  double factor = 2;
  bool is_by_shares = true;  // whether the factor is multiplied by (n - 1) / n
};

// Output of nccl-tests, by default for an all-reduce, over `ranks` GPUs on `nodes` nodes.
std::string nccl_output(std::int64_t ranks, std::int64_t nodes, double gb_per_s, double latency,
                        const PrintedTest& test = {}) {
  std::string text =
      "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 2(factor) warmup iters: 5\n"
      "#\n# Using devices\n";
  for (std::int64_t r = 0; r < ranks; ++r) {
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on  node-{} device {:2} [0x07] GPU\n", r,
                        4000 + r, r / (ranks / nodes), r % (ranks / nodes));
  }
  text +=
      "#\n#                                                              out-of-place       "
      "                in-place\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)\n";
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const double factor = test.factor * (test.is_by_shares ? share : 1.0);
  for (double size = 1 << 20; size <= 1 << 30; size *= 2) {
    const double seconds = latency + factor * size / (gb_per_s * 1e9);
    const double algorithm = size / seconds * 1e-9;
    text += fmt::format(
        "{:12.0f} {:13.0f}     float {:>7} {:7} {:8.1f} {:7.2f} {:7.2f}      0 {:8.1f} {:7.2f} "
        "{:7.2f}      0\n",
        size, size / 4, test.redop, test.root, seconds * 1e6, algorithm, factor * algorithm,
        seconds * 1e6, algorithm, factor * algorithm);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 20\n#\n";
}

NcclTest only_test(const std::string& text) {
  const auto tests = parse_nccl_tests(text, "test.txt");
  if (!tests.ok()) FAIL(to_string(tests.error()));
  REQUIRE(tests->size() == 1);
  return tests->front();
}

}  // namespace

TEST_CASE("Output of nccl-tests is read: ranks, nodes, collective and times") {
  const std::string text = nccl_output(16, 2, 40, 60e-6);
  REQUIRE(is_nccl_test(text));
  const NcclTest test = only_test(text);
  CHECK(test.kind == CollectiveKind::kAllReduce);
  CHECK(test.ranks == 16);
  CHECK(test.nodes == 2);
  CHECK(test.messages.size() == 11);
  CHECK(test.messages.front().size == Bytes(1 << 20));
  CHECK_FALSE(parse_nccl_tests("# size algbw busbw\n", "empty.txt").ok());
  CHECK_FALSE(is_nccl_test(" iteration 1/ 5 | elapsed time per iteration (ms): 5.0 |"));
}

TEST_CASE("Output of nccl-tests of 2020 has no root, and launchers label its lines") {
  const NcclTest now = only_test(nccl_output(16, 2, 40, 60e-6));
  std::string text = nccl_output(16, 2, 40, 60e-6);
  for (const std::string_view root : {"      -1", "    root"}) {
    for (std::size_t at = 0; (at = text.find(root, at)) != std::string::npos;) {
      text.erase(at, root.size());
    }
  }
  for (const std::string_view label : {"", "0: ", "[1,0]<stdout>:", "[2026-01-01 10:00:00] "}) {
    CAPTURE(label);
    std::string labelled(label);
    for (const char letter : text.substr(0, text.size() - 1)) {
      labelled += letter;
      if (letter == '\n') labelled += label;
    }
    const NcclTest old = only_test(labelled);
    CHECK(old.ranks == 16);
    CHECK(old.kind == CollectiveKind::kAllReduce);
    REQUIRE(old.messages.size() == now.messages.size());
    CHECK(old.messages.back().time.value() == Approx(now.messages.back().time.value()));
  }
}

TEST_CASE("Each nccl-test of a file keeps its own collective and ranks") {
  const std::string reduced = nccl_output(16, 2, 40, 60e-6);
  const std::string gathered = nccl_output(8, 1, 40, 60e-6, {.redop = "none", .factor = 1});
  const std::string starts = "# Collective test starting: ";
  for (const bool are_named : {false, true}) {
    const std::string first = are_named ? starts + "all_reduce_perf\n" : "";
    const std::string second = are_named ? starts + "all_gather_perf\n" : "";
    const auto both = parse_nccl_tests(first + reduced + second + gathered, "both.txt");
    REQUIRE(both.ok());
    REQUIRE(both->size() == 2);
    CHECK(both->front().kind == CollectiveKind::kAllReduce);
    CHECK(both->front().ranks == 16);
    CHECK(both->back().kind == CollectiveKind::kAllGather);
    CHECK(both->back().ranks == 8);
    CHECK(both->back().messages.size() == 11);
  }
}

TEST_CASE("nccl-tests whose pattern no training step has are refused by name") {
  struct Refused {
    const char* name;
    PrintedTest printed;
  };
  for (const Refused& one : {Refused{"reduce_perf", {"sum", 0, 1, false}},
                             Refused{"sendrecv_perf", {"none", -1, 1, false}},
                             Refused{"gather_perf", {"none", 0, 1, true}}}) {
    for (const std::int64_t ranks : {2, 8, 16}) {
      const std::string text = nccl_output(ranks, ranks == 16 ? 2 : 1, 40, 60e-6, one.printed);
      for (const std::string& start :
           {std::string(), fmt::format("$ ./build/{} -b 1M\n", one.name)}) {
        CAPTURE(one.name, ranks, start);
        const auto read = parse_nccl_tests(start + text, "test.txt");
        REQUIRE_FALSE(read.ok());
        CHECK_THAT(read.error().message, Catch::Contains(one.name));
      }
    }
  }
  const std::string root = nccl_output(8, 1, 40, 60e-6, {"none", 0, 1, false});
  CHECK(only_test(root).kind == CollectiveKind::kBroadcast);
}

TEST_CASE("A link's efficiency follows the bandwidth of its messages") {
  Scenario scenario = starting_point();
  ClusterSpec cluster = scenario.cluster;
  cluster.gpus_per_node = 8;
  const double full = cluster.inter_node.bandwidth.value() *
                      static_cast<double>(std::min<std::int64_t>(cluster.nics_per_node, 8)) * 1e-9;
  for (const double share : {0.9, 0.45}) {
    const NcclTest test = only_test(nccl_output(16, 2, share * full, 40e-6));
    const Result<FittedLink> link = fit_link({test}, cluster, scenario.profile);
    REQUIRE(link.ok());
    CHECK(link->between_nodes);
    CHECK(link->after.efficiency == Approx(share).epsilon(0.15));
    CHECK(link->error_after < 0.12);
    CHECK(link->error_left_out < 0.15);
  }
}

}  // namespace tpsim
