// The clock of a step: its law, and steps that were measured op by op.
#include "costs/step_clock.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/small_scenario.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

constexpr double kGemms = 0.8;  // clock that GEMMs alone sustain

OpPrice gemm(double seconds) {
  return {Seconds(seconds), PriceSource::kExact, kGemms, Seconds(), 1 - kGemms};
}
OpPrice attention(double seconds, double gemms = kGemms) {
  return {Seconds(seconds), PriceSource::kExact, 1, Seconds(seconds),
          kAttentionPower * (1 - gemms)};
}

// Seconds of a kind of op in one run: alone, and in the measured step.
struct Row {
  std::string kind;
  double alone = 0, measured = 0;
};

std::map<std::string, std::vector<Row>> measured_runs() {
  std::ifstream in(std::string(TPSIM_SOURCE_DIR) + "/tests/costs/measured_steps.csv");
  std::map<std::string, std::vector<Row>> runs;
  for (std::string line; std::getline(in, line);) {
    if (line.front() == '#' || line.rfind("run,", 0) == 0) continue;
    std::istringstream cells(line);
    std::string run, kind, alone, measured;
    std::getline(cells, run, ',');
    std::getline(cells, kind, ',');
    std::getline(cells, alone, ',');
    std::getline(cells, measured, ',');
    runs[run].push_back({kind, std::stod(alone), std::stod(measured)});
  }
  return runs;
}

bool is_attention(const Row& row) { return row.kind.rfind("flash", 0) == 0; }

TEST_CASE("GEMMs alone run at the clock that they sustain, and memory-bound ops at any") {
  StepClock clock;
  clock.add(gemm(1), 1);
  CHECK(clock.solve(Seconds(1), kGemms) == Approx(kGemms));
  CHECK(clock.solve(Seconds(1e9), kGemms) == Approx(1));
  const OpPrice copy{Seconds(1), PriceSource::kModel, 0, Seconds(1)};
  CHECK(copy.at(0.5) == Seconds(1));
  CHECK(StepClock().solve(Seconds(1), kGemms) == 1);
}

TEST_CASE("a clock solves its law") {
  StepClock clock;
  const OpPrice product = gemm(2), scores = attention(1);
  clock.add(product, 1);
  clock.add(scores, 3);
  const double others = 1.5;
  const double start = kGemms;
  const Seconds whole = Seconds(others) + product.at(start) + 3 * scores.at(start);
  const double found = clock.solve(whole, start);
  const Seconds products = product.at(found), all_scores = 3 * scores.at(found);
  const Seconds step = Seconds(others) + products + all_scores;
  CHECK(found == Approx(1 - (1 - kGemms) * (products + kAttentionPower * all_scores) / step));
  CHECK(products < product.time);
  CHECK(all_scores > 3 * scores.time);
}

TEST_CASE("a step never gets longer if its other ops get shorter") {
  for (const double share : {0.1, 0.5, 0.9}) {
    double last = 0;
    for (double others = 0; others < 4; others += 0.05) {
      StepClock clock;
      const OpPrice product = gemm(share), scores = attention(1 - share);
      clock.add(product, 1);
      clock.add(scores, 1);
      const Seconds whole = Seconds(others) + product.at(kGemms) + scores.at(kGemms);
      const double found = clock.solve(whole, kGemms);
      const double step = others + (product.at(found) + scores.at(found)).value();
      CHECK(step >= last);
      last = step;
    }
  }
}

TEST_CASE("measured steps have the law's clock") {
  constexpr double kSustained = 1545.0 / 1980;  // runtime of data/profiles/h200-measured.json
  double worst_step = 0, all_alone = 0, all_clocked = 0;
  const auto runs = measured_runs();
  REQUIRE(runs.size() == 6);
  for (const auto& [run, rows] : runs) {
    StepClock clock;
    std::vector<OpPrice> prices;
    Seconds whole;
    for (const Row& row : rows) {
      OpPrice price{Seconds(row.alone), PriceSource::kExact, 0, Seconds(row.alone)};
      if (row.kind == "matmul") {
        price = {Seconds(row.alone), PriceSource::kExact, kSustained, Seconds(), 1 - kSustained};
      } else if (is_attention(row)) {
        price = attention(row.alone, kSustained);
      }
      clock.add(price, 1);
      prices.push_back(price);
      whole += price.at(kSustained);
    }
    const double found = clock.solve(whole, kSustained);
    double alone = 0, clocked = 0, ops = 0, predicted = 0, measured = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double price = prices[i].at(found).value();
      predicted += price;
      measured += rows[i].measured;
      if (rows[i].kind == "waits") continue;
      ops += rows[i].measured;
      alone += std::abs(rows[i].alone - rows[i].measured);
      clocked += std::abs(price - rows[i].measured);
    }
    all_alone += alone / ops / 6;
    all_clocked += clocked / ops / 6;
    const double error = predicted / measured - 1;
    worst_step = std::max(worst_step, std::abs(error));
    UNSCOPED_INFO(run << ": clock " << found << ", kinds of op " << 100 * alone / ops << " % off, "
                      << 100 * clocked / ops << " % at that clock, step " << 100 * error << " %");
  }
  CHECK(all_alone > 0.08);
  CHECK(all_clocked < 0.03);
  CHECK(worst_step < 0.025);
}

}  // namespace
}  // namespace tpsim
