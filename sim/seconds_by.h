// Seconds for each of the enumerators of E, which count from 0 to Count - 1.
#pragma once

#include <array>
#include <cstddef>

#include "core/units.h"

namespace tpsim {

template <class E, int Count>
class SecondsBy {
 public:
  Seconds& operator[](E kind) { return of_[static_cast<std::size_t>(kind)]; }
  Seconds operator[](E kind) const { return of_[static_cast<std::size_t>(kind)]; }
  auto begin() const { return of_.begin(); }
  auto end() const { return of_.end(); }

  SecondsBy& operator+=(const SecondsBy& other) {
    for (std::size_t i = 0; i < of_.size(); ++i) of_[i] += other.of_[i];
    return *this;
  }
  friend SecondsBy operator*(double n, SecondsBy once) {
    for (Seconds& time : once.of_) time = n * time;
    return once;
  }

 private:
  std::array<Seconds, static_cast<std::size_t>(Count)> of_{};
};

}  // namespace tpsim
