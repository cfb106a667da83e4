#include "tests/cli/golden_runs.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/json/json_document.h"
#include "core/json/safetensors.h"

namespace tpsim::test {
namespace {

std::vector<double> expected_losses(const std::string& model) {
  const JsonValue file =
      *read_json_file(std::string(TPSIM_SOURCE_DIR) + "/tests/golden/" + model + "/expected.json");
  std::vector<double> losses;
  for (const JsonValue& loss : *file.find("loss")->as<JsonValue::Array>()) {
    losses.push_back(*loss.as<double>());
  }
  return losses;
}

double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

}  // namespace

void check_losses(const std::string& model, std::size_t count, const std::vector<Step>& steps,
                  double tolerance) {
  const std::vector<double> expected = expected_losses(model);
  REQUIRE(steps.size() == count);
  for (const Step& step : steps) {
    CHECK(step.loss ==
          Approx(expected[static_cast<std::size_t>(step.number - 1)]).epsilon(tolerance));
  }
}

void check_gradients(const std::string& model, const std::filesystem::path& dump) {
  const auto expected = *SafetensorsFile::open(std::string(TPSIM_SOURCE_DIR) + "/tests/golden/" +
                                               model + "/expected_step0.safetensors");
  const auto found = *SafetensorsFile::open(dump);
  std::size_t compared = 0;
  for (const auto& [key, entry] : expected.entries()) {
    if (!key.starts_with("grad.")) continue;
    std::string name = key.substr(5);
    if (name.starts_with("transformer.")) name.erase(0, 12);
    if (found.entries().count(name) == 0) continue;  // the output layer is tied
    std::int64_t count = 1;
    for (const std::int64_t extent : entry.shape) count *= extent;
    INFO(name);
    CHECK(relative_distance(*found.read_floats(name, 0, count),
                            *expected.read_floats(key, 0, count)) < 1e-4);
    ++compared;
  }
  CHECK(compared == found.entries().size());
  CHECK(compared > 20);
}

}  // namespace tpsim::test
