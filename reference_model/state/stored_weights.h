// Weights that a checkpoint stores in another form than the reference model: several matrices in
// one tensor, or all experts in one tensor, possibly transposed or interleaved.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "reference_model/state/tensor_store.h"

namespace tpsim {

// Element (r, c) of a weight is at offset + r * row_stride + c * col_stride of slab `slab` in the
// stored tensor. If there are several slabs, the first extent of the tensor is their number.
struct StoredPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t slabs = 1, slab = 0;
  std::int64_t offset = 0, row_stride = 1, col_stride = 1;
};
// Returns the place of a weight, by the reference model's name. The name is unchanged if the
// checkpoint stores the weight in the same form.
StoredPlace stored_place(const ModelSpec& model, const std::string& name);

// Reads a region of a weight from a checkpoint, in either form.
Result<std::vector<float>> read_stored(const ModelSpec& model, const BlockReader& reader,
                                       const std::string& name, const BlockPlace& region);
// Converts whole tensors from the reference model's names and form to those of the checkpoint.
std::vector<NamedFloats> as_stored(const ModelSpec& model, std::vector<NamedFloats> tensors);

}  // namespace tpsim
