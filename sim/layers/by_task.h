// One value for each kind of pipeline task.
#pragma once

#include <array>
#include <cstddef>

#include "reference_model/parallel/schedule.h"

namespace tpsim {

template <class T>
struct ByTask {
  std::array<T, kTaskKindCount> of = {};  // in the order of TaskKind

  T& operator[](TaskKind kind) { return of[static_cast<std::size_t>(kind)]; }
  const T& operator[](TaskKind kind) const { return of[static_cast<std::size_t>(kind)]; }
  auto begin() { return of.begin(); }
  auto end() { return of.end(); }
  auto begin() const { return of.begin(); }
  auto end() const { return of.end(); }
};

// The tasks of a layer, and its accumulation of gradients in separate buffers, which runs once per
// chunk after the last task.
template <class T>
struct LayerTasks : ByTask<T> {
  T accumulate = {};
};

}  // namespace tpsim
