// Attention backward and latent attention with one row in five held out.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/median.h"
#include "core/scenario/catalogue.h"
#include "costs/op_cost.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

Profile burst_profile(const std::string& name) {
  static const Catalogue data(std::string(TPSIM_SOURCE_DIR) + "/data");
  Profile profile = *data.load_profile(name);
  profile.burst_clocks = false;  // the tables were timed in bursts
  return profile;
}

// Rows of a file of tests/costs, without comment and header.
std::vector<std::vector<std::string>> rows_of(const std::string& file) {
  std::ifstream in(std::string(TPSIM_SOURCE_DIR) + "/tests/costs/" + file);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.front() == '#' || line.rfind("profile", 0) == 0) continue;
    std::istringstream cells(line);
    std::vector<std::string> fields;
    for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(cell);
    rows.push_back(std::move(fields));
  }
  return rows;
}

const OpCostModel& model_of(const std::string& name) {
  static std::map<std::string, OpCostModel> models;
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return models.emplace(name, OpCostModel(burst_profile(name))).first->second;
}

TEST_CASE("attention backward is predicted where one measured row in five is left out") {
  for (const char* name : {"gb200", "gb300", "h200", "a100-pcie-80gb", "b200-simumax"}) {
    const Profile all = burst_profile(name);
    std::vector<double> errors;
    for (std::size_t fold = 0; fold < 5; ++fold) {
      Profile kept = all;
      kept.ops.clear();
      std::vector<OpSample> left_out;
      for (const OpSample& sample : all.ops) {
        const bool is_left =
            sample.key.kind == OpKind::kFlashBackward && std::hash<OpKey>()(sample.key) % 5 == fold;
        (is_left ? left_out : kept.ops).push_back(sample);
      }
      const OpCostModel model(kept);
      for (const OpSample& sample : left_out) {
        const OpPrice price = model.price({sample.key, 0, 0, test::kTest});
        errors.push_back(std::abs(price.time / sample.median - 1));
      }
    }
    INFO(name << ": median " << upper_median(errors) << " of " << errors.size());
    CHECK(errors.size() >= 8);
    CHECK(upper_median(errors) < 0.10);
  }
}

TEST_CASE("latent attention outside the profiles is predicted") {
  std::map<std::string, std::vector<double>> errors;
  for (const std::vector<std::string>& row : rows_of("held_out_latent.csv")) {
    const std::int64_t batch = std::stoll(row[1]), seq = std::stoll(row[2]);
    const std::int64_t heads = std::stoll(row[3]);
    const double pairs =
        static_cast<double>(batch * heads * seq) * static_cast<double>(seq + 1) / 2;
    const OpRecord op{{OpKind::kFlashForward,
                       DType::kBFloat16,
                       0,
                       {batch, seq, heads, heads, 192, seq, seq, 128}},
                      4 * pairs * 160,
                      0,
                      test::kTest};
    const OpPrice price = model_of(row[0]).price(op);
    REQUIRE(price.source != PriceSource::kExact);
    errors[row[0]].push_back(std::abs(price.time.value() / std::stod(row[4]) - 1));
  }
  REQUIRE(errors.size() == 5);
  for (const auto& [name, of] : errors) {
    INFO(name << ": median " << upper_median(of) << " of " << of.size());
    CHECK(upper_median(of) < 0.05);
  }
}

}  // namespace
}  // namespace tpsim
