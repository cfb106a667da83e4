// Working memory of the CPU's ops. Memory is kept between ops, so that no op allocates in the
// steady state.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tpsim {

class Scratch {
 public:
  // Returns `count` uninitialized floats, aligned to 64 bytes and valid until clear().
  float* floats(std::int64_t count);
  double* doubles(std::int64_t count) { return reinterpret_cast<double*>(floats(2 * count)); }
  // Invalidates all memory that was returned. Several blocks are replaced by one block of their
  // total size, which serves later requests.
  void clear();

 private:
  struct Free {
    void operator()(float* data) const;
  };
  struct Block {
    std::unique_ptr<float[], Free> data;
    std::int64_t size = 0;
    std::int64_t used = 0;
  };

  std::vector<Block> blocks_;
};

}  // namespace tpsim
