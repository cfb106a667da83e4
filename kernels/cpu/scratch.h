// Working memory of the CPU's ops: kept between ops, so that none allocates in the steady state.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tpsim {

class Scratch {
 public:
  // `count` uninitialised floats, aligned to 64 bytes, that stay in place until clear().
  float* floats(std::int64_t count);
  double* doubles(std::int64_t count) { return reinterpret_cast<double*>(floats(2 * count)); }
  // Takes everything back. Afterwards one block serves whatever was handed out since the last time.
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
