// Published times of operations that are not in the shipped profiles, compared with predictions.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "core/base/median.h"
#include "core/scenario/catalogue.h"
#include "costs/collective_cost.h"
#include "costs/op_cost.h"
#include "sim/layers/layer_pricer.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

const Catalogue& catalogue() {
  static const Catalogue data(std::string(TPSIM_SOURCE_DIR) + "/data");
  return data;
}

struct Row {
  std::string profile;
  OpDims dims{};
  double seconds = 0;
};

// Rows "profile,dims...,seconds" after a comment and a header.
std::vector<Row> rows_of(const std::string& file) {
  std::ifstream in(std::string(TPSIM_SOURCE_DIR) + "/tests/costs/" + file);
  std::vector<Row> rows;
  std::string line;
  while (std::getline(in, line)) {
    if (line.front() == '#' || line.rfind("profile", 0) == 0) continue;
    std::vector<std::string> fields;
    std::stringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(cell);
    Row row{fields.front(), {}, std::stod(fields.back())};
    for (std::size_t i = 1; i + 1 < fields.size(); ++i) row.dims[i - 1] = std::stoll(fields[i]);
    rows.push_back(row);
  }
  return rows;
}

struct Errors {
  std::vector<double> sizes;
  void add(double predicted, double measured) {
    sizes.push_back(std::abs(predicted / measured - 1));
  }
  double mean() const {
    double sum = 0;
    for (const double size : sizes) sum += size;
    return sum / static_cast<double>(sizes.size());
  }
  double median() const { return upper_median(sizes); }
};

// The tables were timed in bursts, so the slowdown of sustained clocks is switched off.
OpCostModel burst_model(const std::string& name) {
  Profile profile = catalogue().load_profile(name).value();
  profile.burst_clocks = false;
  return OpCostModel(profile);
}

TEST_CASE("GEMMs outside the profiles are predicted") {
  std::map<std::string, std::array<Errors, 2>> errors;
  std::map<std::string, OpCostModel> models;
  for (const Row& row : rows_of("held_out_products.csv")) {
    const auto [m, n, k, x3, x4, x5, x6, x7] = row.dims;
    if (!models.contains(row.profile)) models.emplace(row.profile, burst_model(row.profile));
    const OpRecord op{
        {OpKind::kMatmul, DType::kBFloat16, kTransposeB, {1, m, n, k}},
        2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
        0,
        test::kTest};
    const OpPrice price = models.at(row.profile).price(op);
    REQUIRE(price.source != PriceSource::kExact);
    const bool of_a_transformer = m >= 512 && n >= 1024 && k >= 1024;
    errors[row.profile][of_a_transformer ? 0 : 1].add(price.time.value(), row.seconds);
  }
  REQUIRE(errors.size() == 1);
  for (const auto& [profile, by_shape] : errors) {
    INFO(profile << ": transformer mean " << by_shape[0].mean() << " median "
                 << by_shape[0].median() << ", other mean " << by_shape[1].mean());
    CHECK(by_shape[0].mean() < 0.05);
    CHECK(by_shape[0].median() < 0.03);
    CHECK(by_shape[1].mean() < 0.10);
  }
}

TEST_CASE("flash attention outside the profiles is predicted") {
  std::map<std::string, Errors> errors;
  std::map<std::string, OpCostModel> models;
  for (const Row& row : rows_of("held_out_flash.csv")) {
    if (!models.contains(row.profile)) models.emplace(row.profile, burst_model(row.profile));
    const auto [batch, seq, heads, kv_heads, head_dim, keys, x6, x7] = row.dims;
    if (seq < 1024) continue;
    const double pairs =
        static_cast<double>(batch * heads * seq) * static_cast<double>(seq + 1) / 2;
    const OpRecord op{{OpKind::kFlashForward, DType::kBFloat16, 0, row.dims},
                      4 * pairs * static_cast<double>(head_dim),
                      0,
                      test::kTest};
    errors[row.profile].add(models.at(row.profile).price(op).time.value(), row.seconds);
  }
  REQUIRE(errors.size() == 2);
  for (const auto& [profile, of] : errors) {
    INFO(profile << ": mean " << of.mean() << " median " << of.median());
    CHECK(of.mean() < 0.06);
    CHECK(of.median() < 0.04);
  }
}

TEST_CASE("collectives of one node are predicted between every second measured size") {
  const std::map<std::string, std::string> clusters = {{"a100-sxm4-80gb", "dgx-a100-node"},
                                                       {"h100-sxm", "dgx-h100-node"},
                                                       {"h200", "dgx-h200-node"},
                                                       {"b200", "dgx-b200"},
                                                       {"b300", "dgx-b300"},
                                                       {"gb200", "gb200-nvl72"},
                                                       {"gb300", "gb300-nvl72"}};
  for (const auto& [profile_name, cluster_name] : clusters) {
    const Profile all = catalogue().load_profile(profile_name).value();
    Profile half = all;
    half.collectives.clear();
    std::vector<CollectiveSample> held_out;
    for (std::size_t i = 0; i < all.collectives.size(); ++i) {
      (i % 2 == 0 ? half.collectives : held_out).push_back(all.collectives[i]);
    }
    const CollectiveCostModel model(half, catalogue().load_cluster(cluster_name).value());
    Errors errors;
    for (const CollectiveSample& s : held_out) {
      errors.add(model.price(s.kind, s.bytes, {s.ranks, 1, s.ranks, 1}).value(), s.median.value());
    }
    INFO(profile_name << ": mean " << errors.mean() << " median " << errors.median());
    CHECK(errors.mean() < 0.09);
    CHECK(errors.median() < 0.05);
  }
}

// 32 GPUs on 4 nodes of 100 GB/s each (stas00/ml-engineering network/benchmarks/README.md, hardware
// not stated; the A100's constants are used): microseconds by bytes.
TEST_CASE("large all-reduces across nodes are predicted") {
  ClusterSpec cluster = catalogue().load_cluster("dgx-a100").value();
  cluster.nics_per_node = 4;
  const CollectiveCostModel model(catalogue().load_profile("a100-sxm4-80gb").value(), cluster);
  const std::map<double, double> published = {{1048576, 118.6},
                                              {67108864, 1531.5},
                                              {268435456, 5714.7},
                                              {1073741824, 22096.4},
                                              {17179869184, 363027.6}};
  for (const auto& [bytes, microseconds] : published) {
    const Seconds time = model.price(CollectiveKind::kAllReduce, Bytes(bytes), {32, 4, 8, 1});
    INFO(bytes << " bytes: " << to_string(time));
    CHECK(time.value() == Approx(microseconds * 1e-6).epsilon(0.2));
  }
}

// Korthikanti et al. 2022, table 4: one layer of the 22B model, tensor parallel over 8 A100s.
TEST_CASE("the layer of the 22B model takes its published time") {
  Scenario scenario{catalogue().load_model("gpt-22b").value(),
                    catalogue().load_cluster("dgx-a100").value(),
                    catalogue().load_profile("a100-sxm4-80gb").value(),
                    catalogue().load_stack("megatron-lm").value()};
  struct Layer {
    bool sequence_parallel;
    Recompute recompute;
    double forward_ms, backward_ms;
  };
  const Layer layers[] = {{false, Recompute::kNone, 7.7, 11.9},
                          {true, Recompute::kNone, 7.2, 11.8},
                          {false, Recompute::kFull, 7.7, 19.5},
                          {false, Recompute::kSelective, 7.7, 13.2},
                          {true, Recompute::kSelective, 7.2, 13.1}};
  for (const Layer& layer : layers) {
    Plan plan;
    plan.degrees.tp = 8;
    plan.micro_batch = plan.global_batch = 4;
    plan.sequence_parallel = layer.sequence_parallel;
    plan.recompute = layer.recompute;
    plan.dtype = DType::kFloat16;
    plan.stage_layers = {scenario.model.layers};
    LayerPricer pricer(scenario);
    const LayerCost& block = pricer.layer(LayerKind::kBlock, plan);
    CHECK(block[TaskKind::kForward].time.device.value() * 1e3 ==
          Approx(layer.forward_ms).epsilon(0.1));
    // Megatron overlaps the gathers of sequence parallelism in backward; the reference model does
    // not.
    const double slack = layer.sequence_parallel ? 0.12 : 0.1;
    CHECK(block[TaskKind::kBackward].time.device.value() * 1e3 ==
          Approx(layer.backward_ms).epsilon(slack));
  }
}

}  // namespace
}  // namespace tpsim
