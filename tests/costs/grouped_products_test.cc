// Grouped GEMMs of experts compared with measured MoE layers, and with one GEMM of all tokens.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/median.h"
#include "core/scenario/catalogue.h"
#include "costs/op_cost.h"

namespace tpsim {
namespace {

const OpCostModel& burst_model(const std::string& name) {
  static const Catalogue data(std::string(TPSIM_SOURCE_DIR) + "/data");
  static std::map<std::string, OpCostModel> models;
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  Profile profile = *data.load_profile(name);
  profile.burst_clocks = false;  // the layers were timed in bursts
  return models.emplace(name, OpCostModel(profile)).first->second;
}

Seconds price(const std::string& profile, const OpDims& dims, std::uint8_t variant,
              DType dtype = DType::kBFloat16) {
  const double flops = 2.0 * static_cast<double>(dims[0] * dims[1] * dims[2] * dims[3]);
  const OpRecord op{
      {OpKind::kMatmul, dtype, variant, dims}, flops, 0, {ModelPart::kExperts, "experts.up"}};
  return burst_model(profile).price(op).time;
}

struct Layer {
  std::string profile;
  std::int64_t experts, tokens, hidden, ffn, up;
  Seconds measured;
};

std::vector<Layer> measured_layers() {
  std::ifstream in(std::string(TPSIM_SOURCE_DIR) + "/tests/costs/expert_layers.csv");
  std::vector<Layer> layers;
  for (std::string line; std::getline(in, line);) {
    if (line.front() == '#' || line.rfind("profile", 0) == 0) continue;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream cells(line);
    Layer layer;
    double seconds = 0;
    cells >> layer.profile >> layer.experts >> layer.tokens >> layer.hidden >> layer.ffn >>
        layer.up >> seconds;
    layer.measured = Seconds(seconds);
    layers.push_back(layer);
  }
  return layers;
}

// Time of a layer: both GEMMs, and passes at memory bandwidth. Tokens are read and written by
// permute and read by unpermute; the tensor between the GEMMs is read and written.
Seconds layer_time(const Layer& layer, BytesPerSecond memory) {
  const auto elements = [&](std::int64_t width) {
    return static_cast<double>(layer.experts * layer.tokens * width);
  };
  const Bytes around(2 * (elements(3 * layer.hidden) + elements((layer.up + 1) * layer.ffn)));
  return price(layer.profile, {layer.experts, layer.tokens, layer.up * layer.ffn, layer.hidden},
               kTransposeB) +
         price(layer.profile, {layer.experts, layer.tokens, layer.hidden, layer.ffn}, kTransposeB) +
         around / memory;
}

TEST_CASE("measured layers of experts have the same price error with few and many tokens") {
  static const std::map<std::string, BytesPerSecond> kMemory = {
      {"h100-sxm", BytesPerSecond(2.85e12)}, {"h200", BytesPerSecond(4.0e12)},
      {"b200", BytesPerSecond(6.8e12)},      {"gb200", BytesPerSecond(6.8e12)},
      {"b300", BytesPerSecond(6.6e12)},      {"gb300", BytesPerSecond(6.8e12)}};
  constexpr std::array<std::int64_t, 3> kLeast = {128, 512, 2048};  // tokens per expert
  std::map<std::string, std::array<std::vector<double>, kLeast.size()>> ratios;
  for (const Layer& layer : measured_layers()) {
    const std::size_t range = layer.tokens >= kLeast[2] ? 2 : layer.tokens >= kLeast[1] ? 1 : 0;
    ratios[layer.profile][range].push_back(layer.measured /
                                           layer_time(layer, kMemory.at(layer.profile)));
  }
  REQUIRE(ratios.size() == kMemory.size());
  for (auto& [name, ranges] : ratios) {
    std::vector<double> medians;
    for (std::vector<double>& of : ranges) {
      REQUIRE(of.size() >= 8);
      medians.push_back(upper_median(of));
    }
    INFO(name << ": measured over predicted " << medians[0] << ", " << medians[1] << ", "
              << medians[2] << " with 128, 512, 2048 tokens an expert and more");
    const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
    CHECK(*most / *least < 1.2);
  }
}

TEST_CASE("the same tokens take longer with more experts, in every GEMM") {
  for (const std::uint8_t variant : {std::uint8_t{kTransposeB}, std::uint8_t{0}}) {
    Seconds before;
    for (const std::int64_t experts : {1, 2, 8, 32}) {
      const Seconds now = price("h100-sxm", {experts, 16384 / experts, 4096, 2048}, variant);
      CHECK(now > before);
      before = now;
    }
  }
  // A wgrad sums over tokens, which k counts. In 8 bits the layout alone does not show this.
  const auto gradient = [](std::int64_t experts, std::uint8_t variant, DType dtype) {
    return price("h100-sxm", {experts, 4096, 2048, 16384 / experts}, variant, dtype);
  };
  constexpr std::uint8_t kNarrow = kTransposeB | kSumsRows;
  const Seconds eight = gradient(8, kTransposeA, DType::kBFloat16);
  CHECK(eight > gradient(1, kTransposeA, DType::kBFloat16));
  CHECK(gradient(8, kNarrow, DType::kFloat8) > gradient(1, kTransposeB, DType::kFloat8));
  CHECK(gradient(8, kNarrow, DType::kFloat8) < eight);
}

TEST_CASE("the weights of more experts add their memory traffic to the GEMM") {
  const Seconds one = price("h100-sxm", {1, 16384, 4096, 2048}, kTransposeB);
  const Seconds two = price("h100-sxm", {2, 8192, 4096, 2048}, kTransposeB);
  const Seconds nine = price("h100-sxm", {9, 8192, 4096, 2048}, kTransposeB);
  const Seconds of_nine = price("h100-sxm", {1, 9 * 8192, 4096, 2048}, kTransposeB);
  CHECK((nine - of_nine).value() == Approx(8 * (two - one).value()));
}

}  // namespace
}  // namespace tpsim
