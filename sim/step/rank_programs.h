// The ops, collectives, copies, host work and allocations of each part of the model on one rank:
// the lowered program that LayerPricer prices.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/base/enum_words.h"
#include "core/plan/plan.h"
#include "core/program/program.h"
#include "sim/layers/layer_pricer.h"

namespace tpsim {

// The repeating parts of a model, as in LayerKind, and the transfer between two model chunks.
enum class ProgramPart : std::uint8_t { kWordEmbeddings, kEmbedding, kBlock, kHead, kTransfer };
template <>
inline constexpr auto kEnumNames<ProgramPart> =
    words<5>("word_embeddings embedding block head transfer");

// An allocation or a free.
struct IssuedMemory {
  LoweredAllocation record;
  std::uint32_t tensor = 0;  // the same for an allocation and its free, unique within a part
  bool is_free = false;
};
// The wait for a collective that started before.
struct IssuedWait {
  LoweredCollective record;
  // Labels of the ops between start and wait. Of a carried collective: those before the wait, in
  // the next layer.
  std::vector<const char*> hidden_by = {};
};
struct IssuedEvent {
  std::variant<LoweredOp, LoweredCollective, IssuedWait, LoweredCopy, HostWork, IssuedMemory> what;
  Stream stream = Stream::kCompute;
  // On the stream, without overlap: of all kernels or calls on the busiest rank.
  Seconds time = {};
  std::string_view source = {};  // of an op's time: a name of PriceSource
  // Number of the collective within the part, from 1, of a start and of its wait. 0 if the compute
  // stream waits at once.
  std::int64_t call = 0;
};

struct PhaseProgram {
  Phase phase{};
  std::vector<IssuedEvent> events;  // in order
};

struct PartProgram {
  ProgramPart part{};
  std::int64_t block = 0;                 // kind of block, if the part is a block
  bool is_recomputed = false;             // whether the block has full recompute
  std::int64_t count = 1;                 // number of these parts in the whole model
  std::vector<PhaseProgram> phases = {};  // only phases with events
};

// Returns the phases of one micro-batch of a layer.
PartProgram micro_batch_program(LayerPricer& pricer, const Plan& plan, LayerKind kind,
                                std::int64_t block);

// Returns the programs in the order of ProgramPart. With Recompute::kBlocks, recomputed blocks and
// other blocks are separate parts. Layers are those after the chosen passes.
std::vector<PartProgram> rank_programs(LayerPricer& pricer, const Plan& plan,
                                       const PassChoice& choice = {});

}  // namespace tpsim
