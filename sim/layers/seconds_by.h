// Seconds per enumerator of an enum that counts from 0, up to and including Last.
#pragma once

#include <array>
#include <cstddef>

#include "core/base/units.h"

namespace tpsim {

template <auto Last>
class SecondsBy {
 public:
  using Kind = decltype(Last);

  Seconds& operator[](Kind kind) { return of_[static_cast<std::size_t>(kind)]; }
  Seconds operator[](Kind kind) const { return of_[static_cast<std::size_t>(kind)]; }
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
  std::array<Seconds, static_cast<std::size_t>(Last) + 1> of_{};
};

}  // namespace tpsim
