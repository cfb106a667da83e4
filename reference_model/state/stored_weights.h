// Weights that a checkpoint keeps otherwise than the reference model: several matrices in one, or
// all experts in one tensor, perhaps transposed or interleaved.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "reference_model/state/tensor_store.h"

namespace tpsim {

// Element (r, c) of a weight lies at offset + r * row_stride + c * col_stride of slab `slab` of the
// stored tensor, whose first extent counts the slabs where there are several.
struct StoredPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t slabs = 1, slab = 0;
  std::int64_t offset = 0, row_stride = 1, col_stride = 1;
};
// Returns the place of a weight, by the reference model's name. The name is unchanged if the
// checkpoint stores the weight in the same form.
StoredPlace stored_place(const ModelSpec& model, const std::string& name);

// A region of a weight from a checkpoint, however it is stored there.
Result<std::vector<float>> read_stored(const ModelSpec& model, const BlockReader& reader,
                                       const std::string& name, const BlockPlace& region);
// Whole tensors by the reference model's names to those of the checkpoint.
std::vector<NamedFloats> as_stored(const ModelSpec& model, std::vector<NamedFloats> tensors);

}  // namespace tpsim
