// Profiles of GPUs from datasheets, without measurements.
#include "app/answers/datasheet.h"

#include <catch2/catch.hpp>

namespace tpsim {
namespace {

TEST_CASE("a datasheet makes a profile of its stated facts and the usual constants") {
  const auto made = app::datasheet_profile(
      "x100",
      {"peak=1200TFLOP/s", "fp8=2400TFLOP/s", "memory=96GB", "bandwidth=4TB/s", "processors=144"},
      "2026-01-01");
  if (!made.ok()) FAIL(to_string(made.error()));
  const Profile& profile = made->profile;
  CHECK(profile.provenance == Provenance::kDatasheet);
  CHECK(profile.model.provenance == Provenance::kDatasheet);
  CHECK(profile.device.matmul_peak.value() == 1200e12);
  CHECK(profile.device.fp8_peak.value() == 2400e12);
  CHECK(profile.device.mxfp8_peak.value() == 0);
  CHECK(profile.device.vector_peak.value() ==
        75e12);  // a sixteenth of the matrix peak, as in its source
  CHECK(profile.device.source.find("not stated") != std::string::npos);
  CHECK(profile.model.matmul_efficiency == usual_model().matmul_efficiency);
  CHECK(made->text.find("matmul_efficiency") == std::string::npos);
}

TEST_CASE("a datasheet's missing facts are named at once, wrong ones by their key") {
  const auto error = [](const std::vector<std::string>& facts) {
    const auto made = app::datasheet_profile("x100", facts, "2026-01-01");
    REQUIRE_FALSE(made.ok());
    CHECK(made.error().kind == ErrorKind::kBadInput);
    return to_string(made.error());
  };
  const std::string none = error({"fp8=2PFLOP/s"});
  for (const char* key : {"peak", "memory", "bandwidth", "processors"}) {
    CHECK(none.find(key) != std::string::npos);
  }
  CHECK(error({"memroy=96GB"}).find("did you mean memory?") != std::string::npos);
  CHECK(error({"peak"}).find("needs a value") != std::string::npos);
  CHECK(error({"peak=1PFLOP/s", "matmul_peak=2PFLOP/s"}).find("twice") != std::string::npos);
  const std::vector<std::string> whole = {"peak=1PFLOP/s", "bandwidth=4TB/s", "processors=144"};
  const auto with = [&](const char* fact) {
    std::vector<std::string> facts = whole;
    facts.emplace_back(fact);
    return error(facts);
  };
  CHECK(with("memory=96").find("unit is missing") != std::string::npos);
  CHECK(with("memory=0GB").find("above zero") != std::string::npos);
}

}  // namespace
}  // namespace tpsim
