#include "app/answers/datasheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/json/json_document.h"
#include "core/machine/profile_json.h"

namespace tpsim::app {
namespace {

constexpr std::string_view kOption = "--from-datasheet";

enum class FactKind : std::uint8_t { kText, kCount, kBytes, kFlops, kBandwidth };

struct Fact {
  std::string_view key;   // name on the command line, where `name` is also accepted
  std::string_view name;  // key in the profile file
  FactKind kind;
  bool required;
  std::string_view example;
};
constexpr std::array kFacts = {
    Fact{"peak", "matmul_peak", FactKind::kFlops, true, "989TFLOP/s (dense, bf16)"},
    Fact{"memory", "memory", FactKind::kBytes, true, "80GB"},
    Fact{"bandwidth", "memory_bandwidth", FactKind::kBandwidth, true, "3.35TB/s"},
    Fact{"processors", "processors", FactKind::kCount, true, "132 (SMs or CUs)"},
    Fact{"vector", "vector_peak", FactKind::kFlops, false, "67TFLOP/s (fp32)"},
    Fact{"fp8", "fp8_peak", FactKind::kFlops, false, "1979TFLOP/s (dense)"},
    Fact{"mxfp8", "mxfp8_peak", FactKind::kFlops, false, "4500TFLOP/s (dense)"},
    Fact{"nvfp4", "nvfp4_peak", FactKind::kFlops, false, "9000TFLOP/s (dense)"},
    Fact{"dtype", "matmul_dtype", FactKind::kText, false, "fp16 if the peak is not a bf16 rate"},
    Fact{"device", "name", FactKind::kText, false, "as nvidia-smi prints it"},
    Fact{"source", "source", FactKind::kText, false, "source of these values"},
};
// Default ratio of the fp32 vector rate to the dense bf16 matrix rate. A100: 1/16, H100: 1/15,
// B200: 1/28.
constexpr double kVectorShare = 1.0 / 16;

Error bad_fact(std::string message, std::string hint = "") {
  return bad_input(std::move(message), std::string(kOption), std::move(hint));
}

// Inserts the space between number and unit that profile files need and users may omit.
std::string spaced(std::string text) {
  const std::size_t unit = text.find_first_not_of("0123456789.eE+-");
  if (unit != std::string::npos && unit > 0 && text[unit] != ' ') text.insert(unit, " ");
  return text;
}

Result<JsonValue> value_of(const Fact& fact, const std::string& text) {
  const std::string amount = spaced(text);
  const auto blamed = [&](const auto& parsed) -> Result<JsonValue> {
    if (parsed.ok()) return JsonValue(amount);
    Error error = parsed.error();
    return bad_fact(fmt::format("{}: {}", fact.key, error.message), error.hint);
  };
  switch (fact.kind) {
    case FactKind::kText: return JsonValue(text);
    case FactKind::kBytes: return blamed(parse_bytes(amount));
    case FactKind::kFlops: return blamed(parse_flops_rate(amount));
    case FactKind::kBandwidth: return blamed(parse_bandwidth(amount));
    case FactKind::kCount: break;
  }
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, count);
  if (bad != std::errc() || stop != end) {
    return bad_fact(fmt::format("{}: '{}' is not a whole number", fact.key, text),
                    fmt::format("write {}={}", fact.key, fact.example));
  }
  return JsonValue(static_cast<double>(count));
}

Result<std::map<std::string_view, std::string>> stated(const std::vector<std::string>& facts) {
  std::vector<std::string_view> keys;
  for (const Fact& fact : kFacts) keys.push_back(fact.key);
  std::map<std::string_view, std::string> all;
  for (const std::string& text : facts) {
    const std::size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const auto* fact = std::find_if(kFacts.begin(), kFacts.end(), [&](const Fact& one) {
      return key == one.key || key == one.name;
    });
    if (fact == kFacts.end()) {
      return bad_fact(
          fmt::format("unknown key '{}'", key),
          meant(nearest(key, keys), fmt::format("known keys: {}", fmt::join(keys, ", "))));
    }
    if (equals == std::string::npos || equals + 1 == text.size()) {
      return bad_fact(fmt::format("{} needs a value", key),
                      fmt::format("write {}={}", fact->key, fact->example));
    }
    if (!all.emplace(fact->key, text.substr(equals + 1)).second) {
      return bad_fact(fmt::format("{} is stated twice", fact->key), "state it once");
    }
  }
  return all;
}

Status check_complete(const std::map<std::string_view, std::string>& all) {
  std::string missing, examples;
  for (const Fact& fact : kFacts) {
    if (!fact.required || all.contains(fact.key)) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", fact.key);
    examples += fmt::format("{}{}={}", examples.empty() ? "" : ", ", fact.key, fact.example);
  }
  if (missing.empty()) return Ok{};
  return bad_fact(fmt::format("values are missing: {}", missing), "write " + examples);
}

}  // namespace

Result<DatasheetProfile> datasheet_profile(const std::string& name,
                                           const std::vector<std::string>& facts,
                                           const std::string& date) {
  TPSIM_TRY(auto all, stated(facts));
  TPSIM_TRY_STATUS(check_complete(all));
  const std::string source = all.contains("source") ? all["source"] : "its datasheet";
  std::string assumed;
  all.try_emplace("device", name);
  all.try_emplace("dtype", "bf16");
  all["source"] = source;
  if (!all.contains("vector")) {
    TPSIM_TRY(const FlopsPerSecond peak, parse_flops_rate(spaced(all["peak"])));
    all["vector"] = to_exact_string(kVectorShare * peak);
    assumed = "; vector_peak is not stated: 1/16 of matmul_peak is assumed";
  }
  all["source"] += assumed;
  JsonValue device = json_object({});
  for (const Fact& fact : kFacts) {
    const auto found = all.find(fact.key);
    if (found == all.end()) continue;
    TPSIM_TRY(JsonValue value, value_of(fact, found->second));
    device.set(std::string(fact.name), std::move(value));
  }
  device.set("asynchronous", JsonValue(true));
  const JsonValue document = json_object({{"format", "tpsim-profile/1"},
                                          {"name", name},
                                          {"source", source + "; no op was timed on this GPU"},
                                          {"date", date},
                                          {"provenance", "datasheet"},
                                          {"device", device},
                                          {"model", json_object({{"provenance", "datasheet"}})},
                                          {"burst_clocks", false}});
  DatasheetProfile made;
  made.text = to_text(document);
  TPSIM_TRY(made.profile, parse_profile(made.text, std::string(kOption)));
  return made;
}

}  // namespace tpsim::app
