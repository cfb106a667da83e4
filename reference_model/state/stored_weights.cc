#include "reference_model/state/stored_weights.h"

#include <charconv>
#include <map>
#include <optional>

#include "reference_model/layers/weight_names.h"

namespace tpsim {
namespace {

bool is_one_of(const std::string& family, std::initializer_list<const char*> families) {
  for (const char* one : families) {
    if (family == one) return true;
  }
  return false;
}

// A parameter name, split into prefix ("model.layers.3."), rest and layer number.
struct InBlock {
  std::string prefix, rest;
  std::int64_t layer = 0;
};
std::optional<InBlock> in_block(const ModelSpec& model, const std::string& name) {
  const std::string blocks = names_of(model).blocks;
  if (!name.starts_with(blocks)) return std::nullopt;
  InBlock place;
  const char* begin = name.data() + blocks.size();
  const char* end = name.data() + name.size();
  const auto [after, failed] = std::from_chars(begin, end, place.layer);
  if (failed != std::errc() || after == end || *after != '.') return std::nullopt;
  const auto split = static_cast<std::size_t>(after + 1 - name.data());
  place.prefix = name.substr(0, split);
  place.rest = name.substr(split);
  return place;
}

// Returns the location of rows starting at row `first` in a checkpoint matrix of `rows` rows, which
// concatenates several matrices row-wise, such as a fused QKV weight.
StoredPlace rows_of(const std::string& name, std::int64_t first, std::int64_t rows,
                    std::int64_t cols) {
  return {name, {rows, cols}, 1, 0, first * cols, cols, 1};
}

// Returns the location of one expert's matrix in a tensor [experts, in, out] that holds all
// experts. The gate and up matrices are adjacent or interleaved columns.
std::optional<StoredPlace> stacked_place(const ModelSpec& block, const InBlock& at) {
  const WeightNames names = names_of(block);
  if (!at.rest.starts_with(names.experts)) return std::nullopt;
  std::int64_t expert = 0;
  const char* begin = at.rest.data() + names.experts.size();
  const char* end = at.rest.data() + at.rest.size();
  const auto [after, failed] = std::from_chars(begin, end, expert);
  if (failed != std::errc()) return std::nullopt;
  const std::string part(after + 1, end);
  const std::string stem = at.prefix + names.experts;
  const std::int64_t f = block.ffn_hidden, h = block.hidden, count = block.experts.count;
  const bool interleaved = block.family == "gpt_oss";
  const bool is_up = part.starts_with("up_proj");
  const std::int64_t step = interleaved ? 2 : 1;
  const std::int64_t first = is_up ? (interleaved ? 1 : f) : 0;
  if (part == "down_proj.weight")
    return StoredPlace{stem + "down_proj", {count, f, h}, count, expert, 0, 1, h};
  if (part == "down_proj.bias")
    return StoredPlace{stem + "down_proj_bias", {count, h}, count, expert, 0, h, 1};
  if (part.ends_with(".bias")) {
    return StoredPlace{
        stem + "gate_up_proj_bias", {count, 2 * f}, count, expert, first, 2 * f, step};
  }
  return StoredPlace{stem + "gate_up_proj", {count, h, 2 * f}, count, expert, first, step, 2 * f};
}

std::optional<StoredPlace> fused_place(const ModelSpec& block, const InBlock& at) {
  const std::int64_t h = block.hidden, f = block.ffn_hidden;
  const std::int64_t q = query_width(block), kv = kv_width(block);
  if (block.family == "phi3") {
    const std::string qkv = at.prefix + "self_attn.qkv_proj.weight";
    if (at.rest == "self_attn.q_proj.weight") return rows_of(qkv, 0, q + 2 * kv, h);
    if (at.rest == "self_attn.k_proj.weight") return rows_of(qkv, q, q + 2 * kv, h);
    if (at.rest == "self_attn.v_proj.weight") return rows_of(qkv, q + kv, q + 2 * kv, h);
  }
  const std::string gate_up = at.prefix + "mlp.gate_up_proj.weight";
  if (at.rest == "mlp.gate_proj.weight") return rows_of(gate_up, 0, 2 * f, h);
  if (at.rest == "mlp.up_proj.weight") return rows_of(gate_up, f, 2 * f, h);
  return std::nullopt;
}

// Returns the number of elements of one slab.
std::int64_t slab_elements(const StoredPlace& place) {
  std::int64_t all = 1;
  for (const std::int64_t extent : place.shape) all *= extent;
  return all / place.slabs;
}

}  // namespace

StoredPlace stored_place(const ModelSpec& model, const std::string& name) {
  const bool stacks = is_one_of(model.family, {"gpt_oss", "llama4_text"});
  const bool fuses = is_one_of(model.family, {"phi3", "glm", "glm4"});
  const std::optional<InBlock> at = stacks || fuses ? in_block(model, name) : std::nullopt;
  if (at && at->layer < model.layers) {
    const ModelSpec block = with_block_kind(model, block_kind(model, at->layer));
    const std::optional<StoredPlace> place =
        stacks ? stacked_place(block, *at) : fused_place(block, *at);
    if (place) return *place;
  }
  return {.name = name, .shape = {}};
}

Result<std::vector<float>> read_stored(const ModelSpec& model, const BlockReader& reader,
                                       const std::string& name, const BlockPlace& region) {
  const StoredPlace place = stored_place(model, name);
  if (place.name == name) return reader.read(name, region);
  const std::int64_t elements = slab_elements(place);
  BlockPlace slab;
  if (place.slabs > 1) {
    slab = {place.slabs, elements, place.slab, 1, 0, elements};
  } else {
    slab = {place.shape[0], place.shape[1], 0, place.shape[0], 0, place.shape[1]};
  }
  TPSIM_TRY(const std::vector<float> stored, reader.read(place.name, slab));
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(region.rows * region.cols));
  for (std::int64_t r = region.row_begin; r < region.row_begin + region.rows; ++r) {
    for (std::int64_t c = region.col_begin; c < region.col_begin + region.cols; ++c) {
      values.push_back(stored[static_cast<std::size_t>(place.offset + r * place.row_stride +
                                                       c * place.col_stride)]);
    }
  }
  return values;
}

std::vector<NamedFloats> as_stored(const ModelSpec& model, std::vector<NamedFloats> tensors) {
  std::vector<NamedFloats> stored;
  std::map<std::string, std::size_t> places;
  for (NamedFloats& tensor : tensors) {
    const StoredPlace place = stored_place(model, tensor.name);
    if (place.name == tensor.name) {
      stored.push_back(std::move(tensor));
      continue;
    }
    const std::int64_t elements = slab_elements(place);
    const auto [found, is_new] = places.try_emplace(place.name, stored.size());
    if (is_new) {
      stored.push_back({place.name, place.shape,
                        std::vector<float>(static_cast<std::size_t>(elements * place.slabs))});
    }
    std::vector<float>& whole = stored[found->second].values;
    const std::int64_t cols = tensor.shape.back();
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const auto n = static_cast<std::int64_t>(i);
      whole[static_cast<std::size_t>(place.slab * elements + place.offset +
                                     n / cols * place.row_stride + n % cols * place.col_stride)] =
          tensor.values[i];
    }
  }
  return stored;
}

}  // namespace tpsim
