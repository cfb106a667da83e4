#include "reference_model/rank_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/files.h"
#include "core/half_floats.h"

namespace tpsim {
namespace {

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

// Where a local parameter lies in its global tensor, without padding rows.
BlockPlace place_of(const RankContext& context, const ParameterSpec& spec) {
  const std::int64_t tp = context.plan.degrees.tp, at = context.at.tp;
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

// The whole flat unit from this rank's share of it.
std::vector<float> gather_unit(RankModel& model, const ParameterUnit& unit, const Tensor& share) {
  const RankContext& context = model.context();
  if (share.elements() == unit.size()) return download(context.device, share);
  Tensor whole = context.device.allocate({unit.size()}, share.dtype(), MemoryCategory::kWorkspace,
                                         "gathered_state");
  context.groups.data.all_gather(share, whole, "state.gather");
  return download(context.device, whole);
}

Tensor share_of(ParameterUnit& unit, OptimizerState& state, StateKind kind) {
  switch (kind) {
    case StateKind::kMaster: return state.master;
    case StateKind::kMomentum: return state.momentum;
    case StateKind::kVariance: return state.variance;
    case StateKind::kGradients: return unit.gradient_share;
  }
  return {};
}

const char* prefix_of(StateKind kind) {
  switch (kind) {
    case StateKind::kMaster: return "master/";
    case StateKind::kMomentum: return "momentum/";
    case StateKind::kVariance: return "variance/";
    case StateKind::kGradients: return "";
  }
  return "";
}

// Is this rank the one that gives a parameter to files?
bool gives(const RankContext& context, const ParameterUnit& unit, const Parameter& p) {
  if (unit.repeats_first_stage()) return false;
  return p.spec.sharding != Sharding::kReplicated || context.at.tp == 0;
}

// Reads every parameter's block under prefix + name and sets this rank's share of it.
Status read_share(RankModel& model, ParameterUnit& unit, const Tensor& share,
                  const BlockReader& reader, const std::string& prefix,
                  std::vector<float>* whole_values) {
  std::vector<float> whole(static_cast<std::size_t>(unit.size()), 0.0F);
  for (const Parameter& p : unit.parameters()) {
    const BlockPlace place = place_of(model.context(), p.spec);
    if (place.rows == 0) continue;
    TPSIM_TRY(const std::vector<float> values, reader.read(prefix + p.spec.name, place));
    std::copy(values.begin(), values.end(), whole.begin() + p.offset);
  }
  const auto begin = static_cast<std::size_t>(model.store().share_begin(unit));
  upload(model.context().device,
         std::span<const float>(whole).subspan(begin, static_cast<std::size_t>(share.elements())),
         share);
  if (whole_values != nullptr) *whole_values = std::move(whole);
  return Ok{};
}

// Weights (rounded to their dtype) and master weights of one unit.
Status read_weights(RankModel& model, ParameterUnit& unit, OptimizerState& state,
                    const BlockReader& reader, const std::string& prefix) {
  std::vector<float> whole;
  TPSIM_TRY_STATUS(read_share(model, unit, state.master, reader, prefix, &whole));
  Device& device = model.context().device;
  if (unit.weights.defined()) {
    upload(device, whole, unit.weights);
    return Ok{};
  }
  const auto begin = static_cast<std::size_t>(model.store().share_begin(unit));
  upload(device,
         std::span<const float>(whole).subspan(
             begin, static_cast<std::size_t>(unit.weight_share.elements())),
         unit.weight_share);
  return Ok{};
}

// Whether every rank succeeded: one failure fails all, so that nobody waits for the dead.
Status agree(RankModel& model, const Status& mine) {
  Device& device = model.context().device;
  Tensor failed = device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, "agreement");
  device.run(Fill{failed, mine.ok() ? 0.0F : 1.0F, "agreement"});
  model.context().groups.world.all_reduce(failed, ReduceOp::kMax, "agreement");
  const bool any = download_scalar(device, failed) > 0;
  if (!mine.ok()) return mine.error();
  if (any) return Error{ErrorKind::kBadInput, "another rank failed", "", ""};
  return Ok{};
}

std::filesystem::path file_of_rank(const std::filesystem::path& folder,
                                   const RankContext& context) {
  return folder / fmt::format("rank-{:05}.safetensors", global_rank(context.plan, context.at));
}

// One data-parallel rank of each shard writes for all.
Status write_rank_file(RankModel& model, const std::vector<TensorBlock>& blocks,
                       const std::filesystem::path& folder) {
  if (model.context().at.dp != 0) return Ok{};
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    return Error{ErrorKind::kBadInput, "cannot create the folder: " + failed.message(),
                 folder.string(), ""};
  }
  return write_blocks(file_of_rank(folder, model.context()), blocks);
}

Status rename_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code failed;
  std::filesystem::remove_all(to, failed);
  std::filesystem::rename(from, to, failed);
  if (failed) {
    return Error{ErrorKind::kBadInput, "cannot rename to " + to.string() + ": " + failed.message(),
                 from.string(), ""};
  }
  return Ok{};
}

}  // namespace

std::vector<TensorBlock> gather_blocks(RankModel& model, StateKind kind) {
  std::vector<TensorBlock> blocks;
  std::size_t i = 0;
  for (ParameterUnit& unit : model.store().units()) {
    OptimizerState& state = model.optimizer().states()[i++];
    const std::vector<float> flat = gather_unit(model, unit, share_of(unit, state, kind));
    for (const Parameter& p : unit.parameters()) {
      const BlockPlace place = place_of(model.context(), p.spec);
      if (!gives(model.context(), unit, p) || place.rows == 0) continue;
      const auto first = flat.begin() + p.offset;
      blocks.push_back({prefix_of(kind) + p.spec.name,
                        p.is_matrix(),
                        place,
                        {first, first + place.rows * place.cols}});
    }
  }
  return blocks;
}

Status load_weights(RankModel& model, const BlockReader& reader) {
  std::size_t i = 0;
  for (ParameterUnit& unit : model.store().units()) {
    TPSIM_TRY_STATUS(read_weights(model, unit, model.optimizer().states()[i++], reader, ""));
  }
  return Ok{};
}

Status save_state(RankModel& model, std::int64_t step, const std::filesystem::path& folder) {
  const std::filesystem::path target = folder / fmt::format("step-{:08}", step);
  const std::filesystem::path temporary = folder / fmt::format(".step-{:08}.part", step);
  const bool first = global_rank(model.context().plan, model.context().at) == 0;
  std::error_code ignored;
  if (first) std::filesystem::remove_all(temporary, ignored);
  TPSIM_TRY_STATUS(agree(model, Ok{}));

  std::vector<TensorBlock> all;
  for (const StateKind kind : {StateKind::kMaster, StateKind::kMomentum, StateKind::kVariance}) {
    for (TensorBlock& block : gather_blocks(model, kind)) all.push_back(std::move(block));
  }
  const Status written = agree(model, write_rank_file(model, all, temporary));
  if (!written.ok()) {
    if (first) std::filesystem::remove_all(temporary, ignored);
    return written;
  }
  return agree(model, first ? rename_folder(temporary, target) : Status(Ok{}));
}

Status load_state(RankModel& model, const std::filesystem::path& step_folder) {
  TPSIM_TRY(const BlockReader reader, BlockReader::open(step_folder));
  std::size_t i = 0;
  for (ParameterUnit& unit : model.store().units()) {
    OptimizerState& state = model.optimizer().states()[i++];
    TPSIM_TRY_STATUS(read_weights(model, unit, state, reader, prefix_of(StateKind::kMaster)));
    TPSIM_TRY_STATUS(
        read_share(model, unit, state.momentum, reader, prefix_of(StateKind::kMomentum), nullptr));
    TPSIM_TRY_STATUS(
        read_share(model, unit, state.variance, reader, prefix_of(StateKind::kVariance), nullptr));
  }
  return Ok{};
}

std::int64_t step_of(const std::filesystem::path& step_folder) {
  const std::string name = step_folder.filename().string();
  std::int64_t step = -1;
  if (name.compare(0, 5, "step-") == 0) {
    std::from_chars(name.data() + 5, name.data() + name.size(), step);
  }
  return step;
}

std::filesystem::path latest_state(const std::filesystem::path& folder) {
  std::filesystem::path latest;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (step_of(entry.path()) < 0) continue;
    if (latest.empty() || step_of(entry.path()) > step_of(latest)) latest = entry.path();
  }
  return latest;
}

Status write_merged(RankModel& model, const std::vector<TensorBlock>& blocks,
                    const std::filesystem::path& path) {
  const std::filesystem::path parts = path.string() + ".parts";
  const bool first = global_rank(model.context().plan, model.context().at) == 0;
  std::error_code ignored;
  if (first) std::filesystem::remove_all(parts, ignored);
  TPSIM_TRY_STATUS(agree(model, Ok{}));
  TPSIM_TRY_STATUS(agree(model, write_rank_file(model, blocks, parts)));
  if (!first) return agree(model, Ok{});
  const auto merge = [&]() -> Status {
    TPSIM_TRY(const BlockReader reader, BlockReader::open(parts));
    std::vector<NamedFloats> tensors;
    for (const std::string& name : reader.names()) {
      TPSIM_TRY(NamedFloats tensor, reader.read_whole(name));
      tensors.push_back(std::move(tensor));
    }
    return write_safetensors(path, tensors, {});
  };
  const Status merged = merge();
  std::filesystem::remove_all(parts, ignored);
  return agree(model, merged);
}

}  // namespace tpsim
