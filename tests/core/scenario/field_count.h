// Number of fields of an aggregate. A test that compares the number fails if a new field is
// forgotten.
#pragma once

#include <cstddef>

namespace tpsim {

struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): never defined, only for overloading
};

template <class Aggregate, class... Fields>
consteval std::size_t field_count() {
  if constexpr (requires { Aggregate{Fields{}..., AnyField{}}; }) {
    return field_count<Aggregate, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

}  // namespace tpsim
