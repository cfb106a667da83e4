#include "reference_model/state/rank_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/base/files.h"
#include "core/base/half_floats.h"
#include "core/plan/rank_layout.h"
#include "ranks/world.h"
#include "reference_model/state/stored_weights.h"

namespace tpsim {
namespace {

constexpr Label kGatherState{ModelPart::kCoordination, "state.gather"};

std::vector<float> download(Device& device, const Tensor& x) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
  device.download(x, bytes);
  std::vector<float> values(static_cast<std::size_t>(x.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (x.dtype() == DType::kFloat32) {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
      continue;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    values[i] = x.dtype() == DType::kBFloat16 ? from_bfloat16(half) : from_float16(half);
  }
  return values;
}

void upload(Device& device, std::span<const float> values, const Tensor& x) {
  if (x.dtype() == DType::kFloat32) {
    device.upload(std::as_bytes(values), x);
    return;
  }
  std::vector<std::uint16_t> halves(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    halves[i] = x.dtype() == DType::kBFloat16 ? to_bfloat16(values[i]) : to_float16(values[i]);
  }
  device.upload(std::as_bytes(std::span<const std::uint16_t>(halves)), x);
}

// Returns the position of a local parameter in its global tensor, without padding rows.
BlockPlace place_of(RankModel& model, const ParameterUnit& unit, const ParameterSpec& spec) {
  const Communicator& sharers = model.store().tensor_group(unit);
  const std::int64_t tp = sharers.size(), at = sharers.rank();
  BlockPlace place;
  place.rows = spec.shape[0];
  place.cols = spec.shape.rank() > 1 ? spec.shape[1] : 1;
  place.global_rows = spec.global_rows;
  place.global_cols = spec.sharding == Sharding::kColumns ? place.cols * tp : place.cols;
  if (spec.sharding == Sharding::kRows) {
    place.row_begin = at * place.rows;
    place.rows = std::clamp<std::int64_t>(spec.global_rows - place.row_begin, 0, place.rows);
  }
  if (spec.sharding == Sharding::kColumns) place.col_begin = at * place.cols;
  return place;
}

// Returns the values of the whole flat unit, gathered from the ZeRO shares of the ranks.
std::vector<float> gather_unit(RankModel& model, const ParameterUnit& unit, const Tensor& share) {
  const RankContext& context = model.context();
  if (share.elements() == unit.size()) return download(context.device, share);
  Tensor whole = context.device.allocate({unit.size()}, share.dtype(), MemoryCategory::kWorkspace,
                                         "gathered_state");
  model.store().data_group(unit).all_gather(share, whole, kGatherState);
  return download(context.device, whole);
}

// Returns a state tensor of the whole flat unit, gathered from the pieces of the ranks. Elements
// without state are 0.
std::vector<float> gather_state(RankModel& model, const ParameterUnit& unit,
                                const StateValues& state, StateTensor tensor) {
  if (is_whole_share(unit, tensor)) return gather_unit(model, unit, state.values);
  const RankContext& context = model.context();
  const Tensor whole = context.device.allocate({unit.size()}, DType::kFloat32,
                                               MemoryCategory::kWorkspace, "gathered_state");
  context.device.run(Fill{whole, 0.0F, kGatherState});
  for (const StatePiece& piece : state.pieces) {
    context.device.run(Copy{state.values.slice(piece.at, piece.count),
                            whole.slice(piece.begin, piece.count), kGatherState});
  }
  const bool is_divided = unit.has_owners() || model.store().zero_stage(unit) > 0;
  if (is_divided) model.store().data_group(unit).all_reduce(whole, ReduceOp::kSum, kGatherState);
  return download(context.device, whole);
}

// Whether this rank writes a parameter to files.
bool gives(RankModel& model, const ParameterUnit& unit, const Parameter& p) {
  if (unit.repeats_first_stage() || model.store().data_group(unit).rank() != 0) return false;
  const bool is_cut = p.spec.sharding == Sharding::kRows || p.spec.sharding == Sharding::kColumns;
  return is_cut || model.store().tensor_group(unit).rank() == 0;
}

// Whether a checkpoint lacks an adapter of the unit, as those of models before fine-tuning do.
bool lacks_adapters(const ParameterUnit& unit, const BlockReader& reader,
                    const std::string& prefix) {
  return std::any_of(unit.parameters().begin(), unit.parameters().end(), [&](const Parameter& p) {
    return p.spec.is_adapter() && !reader.has(prefix + p.spec.name);
  });
}

// Returns this rank's block of every parameter that has the state tensor, in the place of the whole
// flat unit. Blocks are stored under prefix + name. Adapters that are not stored have their values
// in `whole`, or 0.
Result<std::vector<float>> read_unit(RankModel& model, const ParameterUnit& unit,
                                     StateTensor tensor, const BlockReader& reader,
                                     const std::string& prefix, std::vector<float> whole = {}) {
  whole.resize(static_cast<std::size_t>(unit.size()), 0.0F);
  for (const Parameter& p : unit.parameters()) {
    const BlockPlace place = place_of(model, unit, p.spec);
    if (place.rows == 0 || !keeps(p.updater, tensor)) continue;
    if (p.spec.is_adapter() && !reader.has(prefix + p.spec.name)) continue;
    TPSIM_TRY(const std::vector<float> values,
              prefix.empty() ? read_stored(model.context().model, reader, p.spec.name, place)
                             : reader.read(prefix + p.spec.name, place));
    std::copy(values.begin(), values.end(), whole.begin() + p.offset);
  }
  return whole;
}

std::span<const float> part_of(const std::vector<float>& whole, std::int64_t begin,
                               std::int64_t count) {
  return std::span<const float>(whole).subspan(static_cast<std::size_t>(begin),
                                               static_cast<std::size_t>(count));
}

void upload_state(Device& device, const std::vector<float>& whole, const StateValues& state) {
  for (const StatePiece& piece : state.pieces) {
    upload(device, part_of(whole, piece.begin, piece.count),
           state.values.slice(piece.at, piece.count));
  }
}

// Reads the master weights of one unit, and the weights, rounded to their dtype.
Status read_weights(RankModel& model, ParameterUnit& unit, OptimizerState& state,
                    const BlockReader& reader, const std::string& prefix) {
  std::vector<float> present;
  if (lacks_adapters(unit, reader, prefix)) present = gather_unit(model, unit, unit.weight_share);
  TPSIM_TRY(const std::vector<float> whole,
            read_unit(model, unit, StateTensor::kMaster, reader, prefix, std::move(present)));
  Device& device = model.context().device;
  upload_state(device, whole, state.master);
  if (unit.weights.defined()) {
    upload(device, whole, unit.weights);
    return Ok{};
  }
  upload(device, part_of(whole, model.store().share_begin(unit), unit.weight_share.elements()),
         unit.weight_share);
  return Ok{};
}

// Returns the lowest rank that failed, or -1. Collective, and so a barrier.
std::int64_t first_failed_rank(RankModel& model, bool succeeded) {
  const RankContext& context = model.context();
  const std::int64_t ranks = gpu_count(context.plan);
  const std::int64_t mine = succeeded ? 0 : ranks - global_rank(context.plan, context.at);
  const auto found = static_cast<std::int64_t>(greatest_over_world(
      context, static_cast<float>(mine), {ModelPart::kCoordination, "agreement"}));
  return found == 0 ? -1 : ranks - found;
}

// If a rank failed, the first failed rank returns its error and all others throw.
Status outcome_of_all(RankModel& model, const Status& mine, std::int64_t failed_rank) {
  if (failed_rank < 0) return Ok{};
  if (failed_rank == global_rank(model.context().plan, model.context().at)) return mine.error();
  throw CommunicatorAborted(fmt::format("rank {} failed", failed_rank));
}

bool is_first(const RankModel& model) {
  return global_rank(model.context().plan, model.context().at) == 0;
}

std::string file_name_of(std::int64_t rank) { return fmt::format("rank-{:05}.safetensors", rank); }

std::filesystem::path file_of_rank(const std::filesystem::path& folder,
                                   const RankContext& context) {
  return folder / file_name_of(global_rank(context.plan, context.at));
}

// Whether this rank writes a file: it is the first of the ranks with the same weights, or of the
// ranks with the same experts.
bool writes(const RankContext& context) {
  return context.groups.data.rank() == 0 || context.groups.expert_data.rank() == 0;
}

Status write_rank_file(RankModel& model, const std::vector<TensorBlock>& blocks,
                       const std::filesystem::path& folder) {
  if (!writes(model.context())) return Ok{};
  return write_blocks(file_of_rank(folder, model.context()), blocks);
}

// Returns name, size and checksum of the files that all ranks wrote into the folder. The result is
// the same on every rank. Collective.
Result<std::vector<StateFile>> gather_files(RankModel& model, const std::filesystem::path& folder) {
  const RankContext& context = model.context();
  const std::int64_t ranks = gpu_count(context.plan), me = global_rank(context.plan, context.at);
  StateFile mine;
  const Status described = [&]() -> Status {
    if (!writes(context)) return Ok{};
    TPSIM_TRY(mine, describe_state_file(file_of_rank(folder, context)));
    return Ok{};
  }();
  const std::int64_t failed = first_failed_rank(model, described.ok());
  TPSIM_TRY_STATUS(outcome_of_all(model, described, failed));
  const std::array<std::uint64_t, 2> numbers = {static_cast<std::uint64_t>(mine.bytes),
                                                mine.checksum};
  Tensor all =
      context.device.allocate({ranks, 4}, DType::kInt32, MemoryCategory::kWorkspace, "state_files");
  const Tensor part = all.slice(me * 4, 4);
  context.device.upload(std::as_bytes(std::span(numbers)), part);
  context.groups.world.all_gather(part, all, {ModelPart::kCoordination, "state_files"});
  std::vector<std::uint64_t> gathered(static_cast<std::size_t>(ranks) * 2);
  context.device.download(all, std::as_writable_bytes(std::span(gathered)));
  std::vector<StateFile> files;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto bytes = static_cast<std::int64_t>(gathered[static_cast<std::size_t>(rank) * 2]);
    if (bytes == 0) continue;
    files.push_back({file_name_of(rank), bytes, gathered[static_cast<std::size_t>(rank) * 2 + 1]});
  }
  return files;
}

// Adds the blocks of a unit's values that this rank writes: of a state tensor, or of gradients.
void add_blocks(RankModel& model, const ParameterUnit& unit, const std::vector<float>& flat,
                std::optional<StateTensor> tensor, std::vector<TensorBlock>& blocks) {
  const std::string prefix(tensor ? prefix_in_files(*tensor) : "");
  for (const Parameter& p : unit.parameters()) {
    const BlockPlace place = place_of(model, unit, p.spec);
    const bool is_stored = !tensor || keeps(p.updater, *tensor);
    if (!gives(model, unit, p) || place.rows == 0 || !is_stored) continue;
    const auto first = flat.begin() + p.offset;
    blocks.push_back(
        {prefix + p.spec.name, p.is_matrix(), place, {first, first + place.rows * place.cols}});
  }
}

// Reads a buffer stored under prefix + name.
Status read_buffer(RankModel& model, const Buffer& buffer, const BlockReader& reader,
                   const std::string& prefix) {
  const std::int64_t count = buffer.values.elements();
  TPSIM_TRY(const std::vector<float> values,
            reader.read(prefix + buffer.name, {.global_rows = count, .rows = count}));
  upload(model.context().device, values, buffer.values);
  return Ok{};
}

// Adds the buffers to `blocks`, on one rank of each stage, because all ranks of a stage hold the
// same buffers.
void add_buffers(RankModel& model, std::vector<TensorBlock>& blocks) {
  const RankContext& context = model.context();
  if (context.groups.data.rank() != 0 || context.groups.tensor.rank() != 0) return;
  for (const Buffer& buffer : model.store().buffers()) {
    const std::int64_t count = buffer.values.elements();
    blocks.push_back({std::string(prefix_in_files(StateTensor::kMaster)) + buffer.name,
                      false,
                      {.global_rows = count, .rows = count},
                      download(context.device, buffer.values)});
  }
}

}  // namespace

std::vector<TensorBlock> gather_blocks(RankModel& model, StateTensor tensor) {
  std::vector<TensorBlock> blocks;
  std::size_t i = 0;
  for (const ParameterUnit& unit : model.store().units()) {
    const OptimizerState& state = model.optimizer().states()[i++];
    if (unit.is_frozen()) continue;
    add_blocks(model, unit, gather_state(model, unit, state.of(tensor), tensor), tensor, blocks);
  }
  return blocks;
}

std::vector<TensorBlock> gather_gradients(RankModel& model) {
  std::vector<TensorBlock> blocks;
  for (const ParameterUnit& unit : model.store().units()) {
    if (unit.is_frozen()) continue;
    add_blocks(model, unit, gather_unit(model, unit, unit.gradient_share), {}, blocks);
  }
  return blocks;
}

Status load_weights(RankModel& model, const BlockReader& reader) {
  for (const Buffer& buffer : model.store().buffers()) {
    TPSIM_TRY_STATUS(read_buffer(model, buffer, reader, ""));
  }
  std::size_t i = 0;
  for (ParameterUnit& unit : model.store().units()) {
    TPSIM_TRY_STATUS(read_weights(model, unit, model.optimizer().states()[i++], reader, ""));
  }
  return Ok{};
}

Status agree(RankModel& model, const Status& mine) {
  return outcome_of_all(model, mine, first_failed_rank(model, mine.ok()));
}

Status save_state(RankModel& model, std::int64_t step, const std::filesystem::path& folder,
                  const RunFacts& run) {
  TPSIM_TRY_STATUS(agree(model, is_first(model) ? begin_state(folder, step) : Status(Ok{})));
  std::vector<TensorBlock> all;
  for (const StateTensor tensor : kStateTensors) {
    for (TensorBlock& block : gather_blocks(model, tensor)) all.push_back(std::move(block));
  }
  add_buffers(model, all);
  const std::filesystem::path unfinished = unfinished_state(folder, step);
  Status written = write_rank_file(model, all, unfinished);
  std::int64_t failed = first_failed_rank(model, written.ok());
  if (failed < 0) {
    TPSIM_TRY(const std::vector<StateFile> files, gather_files(model, unfinished));
    if (is_first(model)) written = complete_state(folder, step, files, run);
    failed = first_failed_rank(model, written.ok());
  }
  if (failed >= 0) {
    if (is_first(model)) discard_unfinished_states(folder);
    first_failed_rank(model, true);  // barrier: the exit of a rank may end the job
  }
  return outcome_of_all(model, written, failed);
}

Status load_state(RankModel& model, const std::filesystem::path& step_folder) {
  TPSIM_TRY(const BlockReader reader, BlockReader::open(step_folder));
  const std::string weights(prefix_in_files(StateTensor::kMaster));
  for (const Buffer& buffer : model.store().buffers()) {
    if (!reader.has(weights + buffer.name)) continue;  // states of older versions lack buffers
    TPSIM_TRY_STATUS(read_buffer(model, buffer, reader, weights));
  }
  std::size_t i = 0;
  for (ParameterUnit& unit : model.store().units()) {
    OptimizerState& state = model.optimizer().states()[i++];
    if (unit.is_frozen()) continue;
    TPSIM_TRY_STATUS(read_weights(model, unit, state, reader, weights));
    for (const StateTensor moment : {StateTensor::kMomentum, StateTensor::kVariance}) {
      TPSIM_TRY(const std::vector<float> whole,
                read_unit(model, unit, moment, reader, std::string(prefix_in_files(moment))));
      upload_state(model.context().device, whole, state.of(moment));
    }
  }
  return Ok{};
}

Result<SavedState> agreed_state(RankModel& model, const std::filesystem::path& folder) {
  const RankContext& context = model.context();
  Result<SavedState> found = SavedState{};
  if (is_first(model)) found = newest_whole_state(folder);
  const Status status = found.ok() ? Status(Ok{}) : Status(found.error());
  TPSIM_TRY_STATUS(agree(model, status));
  std::array<std::int64_t, 1> step = {found->step};
  const Tensor shared =
      context.device.allocate({2}, DType::kInt32, MemoryCategory::kWorkspace, "saved_step");
  context.device.upload(std::as_bytes(std::span(step)), shared);
  context.groups.world.broadcast(shared, 0, {ModelPart::kCoordination, "saved_step"});
  context.device.download(shared, std::as_writable_bytes(std::span(step)));
  SavedState state = *found;
  state.step = step[0];
  if (state.step > 0) state.path = saved_state(folder, state.step);
  return state;
}

Status write_merged(RankModel& model, const std::vector<TensorBlock>& blocks,
                    const std::filesystem::path& path) {
  const std::filesystem::path parts = path.string() + ".parts";
  std::error_code ignored;
  const auto clear = [&]() -> Status {
    std::filesystem::remove_all(parts, ignored);
    std::error_code failed;
    std::filesystem::create_directories(parts, failed);
    if (!failed) return Ok{};
    return bad_input("cannot create the folder: " + failed.message(), parts.string());
  };
  TPSIM_TRY_STATUS(agree(model, is_first(model) ? clear() : Status(Ok{})));
  const Status mine = write_rank_file(model, blocks, parts);
  const std::int64_t failed = first_failed_rank(model, mine.ok());
  const auto merge = [&]() -> Status {
    TPSIM_TRY(const BlockReader reader, BlockReader::open(parts));
    std::vector<NamedFloats> tensors;
    for (const std::string& name : reader.names()) {
      TPSIM_TRY(NamedFloats tensor, reader.read_whole(name));
      tensors.push_back(std::move(tensor));
    }
    return write_safetensors(path, as_stored(model.context().model, std::move(tensors)), {});
  };
  const Status merged = is_first(model) && failed < 0 ? merge() : Status(Ok{});
  if (is_first(model)) std::filesystem::remove_all(parts, ignored);
  const Status whole = agree(model, merged);
  return failed < 0 ? whole : outcome_of_all(model, mine, failed);
}

}  // namespace tpsim
