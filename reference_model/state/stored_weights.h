// Weights whose storage in a checkpoint differs from the reference model: several matrices in one
// tensor, or all experts in one tensor, possibly transposed or interleaved.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "reference_model/state/tensor_store.h"

namespace tpsim {

// Location of a weight in a stored tensor. Element (r, c) is at offset + r * row_stride + c *
// col_stride of slab `slab`, one index of the first dimension. With one slab the whole tensor is
// the slab.
struct StoredPlace {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t slabs = 1, slab = 0;
  std::int64_t offset = 0, row_stride = 1, col_stride = 1;
};
// Returns the location of a weight in the checkpoint, from its name in the reference model. Returns
// the same name if the checkpoint stores the weight as the reference model does.
StoredPlace stored_place(const ModelSpec& model, const std::string& name);

// Reads a region of a weight from a checkpoint, whichever way the checkpoint stores the weight.
Result<std::vector<float>> read_stored(const ModelSpec& model, const BlockReader& reader,
                                       const std::string& name, const BlockPlace& region);
// Converts whole tensors from the reference model's names and storage to those of the checkpoint.
std::vector<NamedFloats> as_stored(const ModelSpec& model, std::vector<NamedFloats> tensors);

}  // namespace tpsim
