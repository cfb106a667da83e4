#include "sim/memory/memory_walk.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "sim/memory/stage_memory.h"
#include "sim/step/rank_programs.h"

namespace tpsim {
namespace {

constexpr TensorGroup kTransfer{"between stages", MemoryCategory::kActivations,
                                "pipeline.activation"};
constexpr TensorGroup kOnHost = whole_stage(MemoryCategory::kActivations, "on the host");
constexpr TensorGroup kInReduction =
    whole_stage(MemoryCategory::kGradients, "of the previous layer, in reduction");
constexpr TensorGroup kNarrowGradients =
    whole_stage(MemoryCategory::kWorkspace, "16-bit gradients");

// The layer that allocates a tensor.
enum class Owner : std::uint8_t { kLayer, kInput, kOutputGradient };

// Allocations and frees of a layer's phase.
struct PhaseMoves {
  struct Move {
    Seconds at;  // since the start of the phase
    double bytes = 0;
    Owner owner{};
    TensorGroup group;  // for Owner::kLayer
  };
  std::vector<Move> moves;
  Seconds time;
};

struct LayerMoves : LayerTasks<PhaseMoves> {
  TensorGroup output, input_gradient;  // tensors for the next layer
};

// Reads the moves of a layer from its program.
class MovesOfLayer {
 public:
  MovesOfLayer(const PartProgram& part, const AllocationRounding& rounding)
      : part_(name_of(part.part)), rounding_(rounding) {
    for (const PhaseProgram& phase : part.phases) note_lifetimes(phase);
    for (const PhaseProgram& phase : part.phases) {
      if (PhaseMoves* moves = moves_of(phase.phase)) read(phase, *moves);
    }
    for (const auto& [tensor, made] : made_) {
      const bool is_left = made.is_allocated && !made.is_freed;
      if (!is_left || made.group.category != MemoryCategory::kActivations) continue;
      (made.in == Phase::kForward ? layer_.output : layer_.input_gradient) = made.group;
    }
  }
  LayerMoves take() { return std::move(layer_); }

 private:
  struct Made {
    bool is_allocated = false, is_freed = false;
    Phase in{};  // where the tensor is allocated
    TensorGroup group;
  };

  PhaseMoves* moves_of(Phase phase) {
    switch (phase) {
      case Phase::kForward: return &layer_[TaskKind::kForward];
      case Phase::kRecompute:
      case Phase::kBackward: return &layer_[TaskKind::kBackward];
      case Phase::kWeightGradient: return &layer_[TaskKind::kWeightGradient];
      case Phase::kAccumulate: return &layer_.accumulate;
      default: return nullptr;
    }
  }

  void note_lifetimes(const PhaseProgram& phase) {
    if (moves_of(phase.phase) == nullptr) return;
    for (const IssuedEvent& event : phase.events) {
      const auto* memory = std::get_if<IssuedMemory>(&event.what);
      if (memory == nullptr) continue;
      Made& made = made_[memory->tensor];
      made.group = {part_, memory->record.category, memory->record.label};
      if (memory->is_free) {
        made.is_freed = true;
      } else {
        made.is_allocated = true;
        made.in = phase.phase;
      }
    }
  }

  // A tensor that the layer frees and does not allocate is its input, or the gradient of its
  // output, which is allocated after the tensors of forward.
  Owner owner_of(const IssuedMemory& memory) const {
    if (made_.at(memory.tensor).is_allocated || !memory.record.is_traced) return Owner::kLayer;
    const bool is_input = std::any_of(made_.begin(), made_.end(), [&](const auto& other) {
      return other.second.is_allocated && other.second.in == Phase::kForward &&
             other.first > memory.tensor;
    });
    return is_input ? Owner::kInput : Owner::kOutputGradient;
  }

  void read(const PhaseProgram& phase, PhaseMoves& moves) {
    for (const IssuedEvent& event : phase.events) {
      const auto* memory = std::get_if<IssuedMemory>(&event.what);
      if (memory == nullptr) {
        if (event.stream != Stream::kHost) moves.time += event.time;
        continue;
      }
      const double sign = memory->is_free ? -1 : 1;
      const double bytes = sign * allocated_bytes(memory->record, rounding_);
      if (memory->record.category == MemoryCategory::kHost) continue;
      moves.moves.push_back({moves.time, bytes, owner_of(*memory), made_.at(memory->tensor).group});
    }
  }

  std::string_view part_;
  AllocationRounding rounding_;
  std::map<std::uint32_t, Made> made_;
  LayerMoves layer_;
};

// A layer of a chunk, with the groups of the tensors that its neighbours pass to it.
struct WalkedLayer {
  const LayerMoves* moves = nullptr;
  const LayerMemory* memory = nullptr;
  bool offloads = false;
  TensorGroup input, output_gradient;
};

class StageWalker {
 public:
  StageWalker(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs, std::int64_t stage,
              const MemoryVisitor& visit)
      : pricer_(pricer),
        plan_(plan),
        costs_(costs),
        stage_(stage),
        visit_(visit),
        habits_(step_habits(pricer.scenario().stack, plan)) {
    for (const std::int32_t chunk : stage_cost().chunks) {
      chunks_.push_back(layers_of(costs_.kinds[static_cast<std::size_t>(chunk)]));
    }
  }

  void walk(const Timeline& timeline) {
    task_ = kStepStart;
    start();
    for (task_ = 0; task_ < timeline.spans.size(); ++task_) {
      const TimelineSpan& span = timeline.spans[task_];
      if (span.stage != stage_) continue;
      switch (span.kind) {
        case SpanKind::kForward: forward(span); break;
        case SpanKind::kBackward: backward(span); break;
        case SpanKind::kWeightGradient: weight_gradient(span); break;
        case SpanKind::kOptimizer: update(span); break;
        default: break;
      }
    }
  }

 private:
  struct Chunk {
    ChunkKind kind;
    std::vector<WalkedLayer> layers;
  };

  const StageCost& stage_cost() const { return costs_.stages[static_cast<std::size_t>(stage_)]; }

  const LayerMoves& moves_of(const ChunkLayer& layer) {
    const Plan run = plan_of(layer, plan_);
    const auto key = std::tuple(layer.kind, layer.block, run.recompute);
    const auto found = moves_.find(key);
    if (found != moves_.end()) return found->second;
    const PartProgram part = micro_batch_program(pricer_, run, layer.kind, layer.block);
    const AllocationRounding rounding = allocation_rounding(pricer_.scenario().stack);
    return moves_.emplace(key, MovesOfLayer(part, rounding).take()).first->second;
  }

  Chunk layers_of(const ChunkKind& kind) {
    Chunk chunk{kind, {}};
    for (const ChunkLayer& layer : chunk_layers(pricer_.scenario(), plan_, kind)) {
      const LayerMemory& memory =
          pricer_.layer_memory(layer.kind, plan_of(layer, plan_), layer.block);
      const WalkedLayer walked{&moves_of(layer), &memory, layer.offloads, kTransfer, kTransfer};
      chunk.layers.insert(chunk.layers.end(), static_cast<std::size_t>(layer.count), walked);
    }
    for (std::size_t i = 1; i < chunk.layers.size(); ++i) {
      chunk.layers[i].input = chunk.layers[i - 1].moves->output;
      chunk.layers[i - 1].output_gradient = chunk.layers[i].moves->input_gradient;
    }
    return chunk;
  }

  // Visits weights, gradients and optimizer state.
  void start() {
    const BytesByCategory& held = stage_cost().held;
    for (std::size_t i = 0; i < held.size(); ++i) {
      const auto category = static_cast<MemoryCategory>(i);
      const bool is_there = category != MemoryCategory::kGradients || !habits_.frees_gradients;
      if (is_there) add(0, held[i], whole_stage(category, name_of(category)));
    }
  }

  void add(Picoseconds time, double bytes, const TensorGroup& group) {
    if (bytes != 0) visit_({time, bytes, group, task_});
  }

  // Adds a phase of a layer that begins at `from`, a share of `span`. Returns its end.
  double add_phase(const TimelineSpan& span, double from, const PhaseMoves& phase, Seconds all,
                   const WalkedLayer& layer) {
    for (const PhaseMoves::Move& move : phase.moves) {
      const double share = all > Seconds() ? from + move.at / all : from;
      add(time_at(span, share), move.bytes,
          move.owner == Owner::kLayer   ? move.group
          : move.owner == Owner::kInput ? layer.input
                                        : layer.output_gradient);
    }
    return all > Seconds() ? from + phase.time / all : from;
  }
  Picoseconds time_at(const TimelineSpan& span, double share) const {
    return span.begin +
           static_cast<Picoseconds>(share * static_cast<double>(span.end - span.begin));
  }

  const Chunk& chunk_of(const TimelineSpan& span) const {
    return chunks_[static_cast<std::size_t>(span.chunk / plan_.degrees.pp)];
  }

  // An offloaded layer's activations are on the device while the next layer runs, because they are
  // copied meanwhile.
  void forward(const TimelineSpan& span) {
    const Chunk& chunk = chunk_of(span);
    Seconds all;
    for (const WalkedLayer& layer : chunk.layers) all += (*layer.moves)[TaskKind::kForward].time;
    if (!chunk.kind.is_first) add(span.begin, costs_.transfer.bytes, kTransfer);
    double at = 0;
    for (const WalkedLayer& layer : chunk.layers) {
      const double copied =
          layer.offloads ? (*layer.memory)[TaskKind::kForward].left[memory_index::kActivations] : 0;
      add(time_at(span, at), copied, kOnHost);
      at = add_phase(span, at, (*layer.moves)[TaskKind::kForward], all, layer);
      add(time_at(span, at), -2 * copied, kOnHost);
    }
    if (!chunk.kind.is_last) {
      add(span.end, -costs_.transfer.bytes, chunk.layers.back().moves->output);
    }
  }

  void backward(const TimelineSpan& span) {
    const Chunk& chunk = chunk_of(span);
    Seconds all;
    for (const WalkedLayer& layer : chunk.layers) {
      all += (*layer.moves)[TaskKind::kBackward].time + layer.moves->accumulate.time;
    }
    if (!chunk.kind.is_last) add(span.begin, costs_.transfer.bytes, kTransfer);
    const double narrow = habits_.narrow_gradients * stage_cost().held[memory_index::kGradients];
    add(span.begin, narrow, kNarrowGradients);
    const bool stays = layer_gradients_stay(pricer_.scenario().stack, plan_);
    double at = 0, behind = 0;
    for (auto layer = chunk.layers.rbegin(); layer != chunk.layers.rend(); ++layer) {
      const double copied =
          layer->offloads ? (*layer->memory)[TaskKind::kForward].left[memory_index::kActivations]
                          : 0;
      // The reductions of all blocks end before the embedding's backward.
      if (chunk.kind.is_first && std::next(layer) == chunk.layers.rend()) behind = 0;
      add(time_at(span, at), behind, kInReduction);
      add(time_at(span, at), 2 * copied, kOnHost);
      at = add_phase(span, at, (*layer->moves)[TaskKind::kBackward], all, *layer);
      add(time_at(span, at), -copied, kOnHost);
      add(time_at(span, at), -behind, kInReduction);
      behind = stays ? layer->memory->gradients : 0;
    }
    for (const WalkedLayer& layer : chunk.layers) {
      at = add_phase(span, at, layer.moves->accumulate, all, layer);
    }
    add(span.end, -narrow, kNarrowGradients);
    if (!chunk.kind.is_first) {
      add(span.end, -costs_.transfer.bytes, chunk.layers.front().moves->input_gradient);
    }
  }

  void weight_gradient(const TimelineSpan& span) {
    const Chunk& chunk = chunk_of(span);
    Seconds all;
    for (const WalkedLayer& layer : chunk.layers) {
      all += (*layer.moves)[TaskKind::kWeightGradient].time;
    }
    double at = 0;
    for (auto layer = chunk.layers.rbegin(); layer != chunk.layers.rend(); ++layer) {
      at = add_phase(span, at, (*layer->moves)[TaskKind::kWeightGradient], all, *layer);
    }
  }

  void update(const TimelineSpan& span) {
    const StageCost& stage = stage_cost();
    BytesByCategory temporary = stage.update;
    temporary[memory_index::kWorkspace] +=
        habits_.optimizer_copy * stage.held[memory_index::kOptimizer];
    const TensorGroup gradients = whole_stage(MemoryCategory::kGradients, "gradients");
    if (habits_.frees_gradients) add(span.begin, stage.held[memory_index::kGradients], gradients);
    for (std::size_t i = 0; i < temporary.size(); ++i) {
      const TensorGroup group =
          whole_stage(static_cast<MemoryCategory>(i), "temporaries of the update");
      add(span.begin, temporary[i], group);
      add(span.end, -temporary[i], group);
    }
    if (habits_.frees_gradients) add(span.end, -stage.held[memory_index::kGradients], gradients);
  }

  LayerPricer& pricer_;
  const Plan& plan_;
  const PlanCosts& costs_;
  std::int64_t stage_;
  const MemoryVisitor& visit_;
  StepHabits habits_;
  std::map<std::tuple<LayerKind, std::int64_t, Recompute>, LayerMoves> moves_;
  std::vector<Chunk> chunks_;
  std::size_t task_ = 0;
};

}  // namespace

void walk_memory(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                 const Timeline& timeline, std::int64_t stage, const MemoryVisitor& visit) {
  StageWalker(pricer, plan, costs, stage, visit).walk(timeline);
}

}  // namespace tpsim
