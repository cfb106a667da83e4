// A captured step: what one rank of a PyTorch program does between two updates of its weights, in
// the order in which the host issues it. python/tpsim_capture writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/enum_words.h"
#include "core/base/result.h"
#include "core/program/program.h"

namespace tpsim {

struct CapturedTensor {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements; empty: contiguous
  std::string dtype;                  // PyTorch's name: "bfloat16"
  std::int64_t element_bytes = 0;

  std::int64_t elements() const;  // without repetitions by strides of 0
  double bytes() const { return static_cast<double>(elements() * element_bytes); }
};

// An op of PyTorch's dispatcher with its operands.
struct CapturedKernel {
  std::string op;  // "aten.mm.default"
  std::vector<CapturedTensor> in, out;
  std::vector<double> scalars;  // of attention
  bool copies_to_device = false, copies_to_host = false;
  std::int64_t bytes = 0;  // read and written by a fused kernel; 0: all of `in` and `out`
};

enum class CapturedPhase : std::uint8_t { kForward, kBackward, kOptimizer };
template <>
inline constexpr auto kEnumNames<CapturedPhase> = words<3>("forward backward optimizer");

struct CapturedCollective {
  CollectiveKind kind{};
  std::uint32_t group = 0;  // into CapturedStep::groups
  std::int64_t bytes = 0;   // as in CollectiveRecord
};

struct CapturedStorage {
  std::int64_t bytes = 0;
  std::optional<MemoryCategory> category;  // nothing: made for the step
  std::uint32_t module = 0;
};

struct CapturedEvent {
  enum class Kind : std::uint8_t {
    kKernel,      // index: into kernels
    kCollective,  // index: into collectives
    kAllocate,    // index: into storages, also for kFree
    kFree,
    kMark,      // index: a point of the stream
    kWait,      // the stream waits for the mark
    kCall,      // the host enters a module's forward
    kHostWait,  // the host waits for the mark; kEverything: for all streams
  } kind{};
  std::uint32_t index = 0;
  std::int64_t stream = 0;
  CapturedPhase phase{};
  std::uint32_t module = 0;  // into modules

  static constexpr std::uint32_t kEverything = ~std::uint32_t{0};
};

struct CapturedStep {
  std::vector<std::pair<std::string, std::string>> software;  // library and version
  std::vector<std::pair<std::string, std::string>> assumed;   // line, and what was read there
  std::int64_t world = 1, rank = 0;
  std::vector<std::string> modules;
  std::vector<std::vector<std::int64_t>> groups;  // global ranks
  std::vector<CapturedKernel> kernels;
  std::vector<CapturedCollective> collectives;
  std::vector<CapturedStorage> storages;
  std::vector<std::uint32_t> live_at_start;  // storages
  std::vector<CapturedEvent> events;
};

// `file` is used in error messages, which name the line.
Result<CapturedStep> parse_captured_step(std::string_view text, const std::string& file);
Result<CapturedStep> read_captured_step(const std::filesystem::path& path);
// Whether the file begins as a captured step does.
bool is_captured_step(const std::filesystem::path& path);

}  // namespace tpsim
