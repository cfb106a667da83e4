// The programs of a rank by part of the plan's model: those that LayerPricer prices, with the
// passes of 8-bit and 4-bit recipes and the forward ops that run again in backward.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/base/enum_words.h"
#include "core/plan/plan.h"
#include "core/program/program.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// The parts of the model that repeat, as LayerKind, and the activation between two model chunks.
enum class ProgramPart : std::uint8_t { kWordEmbeddings, kEmbedding, kBlock, kHead, kTransfer };
template <>
inline constexpr auto kEnumNames<ProgramPart> =
    words<5>("word_embeddings embedding block head transfer");

enum class ProgramPhase : std::uint8_t {
  // Once for each micro-batch.
  kForward,
  kRecompute,  // forward ops that run again before backward and are not executed by `tpsim run`
  kBackward,
  kAccumulate,  // gradients kept beside the accumulation buffer are added to it
  kSend,
  kReceive,
  // Once for each step.
  kClearGradients,
  kUpdate,  // gradients are reduced, weights updated and gathered
  // Once for each run.
  kAllocate,  // weights, gradients and optimizer state
};
template <>
inline constexpr auto kEnumNames<ProgramPhase> =
    words<9>("forward recompute backward accumulate send receive clear_gradients update allocate");

struct IssuedOp {
  OpRecord record;
  std::int64_t kernels = 1;  // launches of the op in the scenario's software
};
// An allocation, or its end.
struct IssuedMemory {
  AllocationRecord record;
  std::uint32_t tensor = 0;  // the same number in an allocation of a part and in its free
  bool is_free = false;
};
using IssuedEvent = std::variant<IssuedOp, CollectiveRecord, IssuedMemory>;

struct PhaseProgram {
  ProgramPhase phase{};
  std::vector<IssuedEvent> events;  // in order
};

struct PartProgram {
  ProgramPart part{};
  std::int64_t block = 0;                 // the kind of block, where the part is one
  bool is_recomputed = false;             // the whole block is
  std::int64_t count = 1;                 // of such parts in the model, over all stages
  std::vector<PhaseProgram> phases = {};  // those with events
};

// In the order of ProgramPart. Blocks of a plan that recomputes some of them are two parts.
std::vector<PartProgram> rank_programs(const LayerPricer& pricer, const Plan& plan);

}  // namespace tpsim
