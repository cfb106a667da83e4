// How many fields an aggregate has: a test that counts them fails when one is added and forgotten.
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
