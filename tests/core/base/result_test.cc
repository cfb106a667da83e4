// Errors as values, and exceptions as errors.
#include "core/base/result.h"

#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>

namespace tpsim {

TEST_CASE("an allocation failure is not reported as a bug") {
  CHECK(error_from(std::bad_alloc()).kind == ErrorKind::kDoesNotFit);
  CHECK(error_from(std::bad_array_new_length()).kind == ErrorKind::kDoesNotFit);
  // Thrown by a container above its maximum size.
  CHECK(error_from(std::length_error("vector::reserve")).kind == ErrorKind::kDoesNotFit);
  CHECK_FALSE(error_from(std::bad_alloc()).hint.empty());
}

TEST_CASE("any other exception is a bug with its message") {
  const Error bug = error_from(BugError("a.cc:1: check failed"));
  CHECK(bug.kind == ErrorKind::kBug);
  CHECK(bug.message == "a.cc:1: check failed");
  CHECK(error_from(std::runtime_error("x")).kind == ErrorKind::kBug);
}

}  // namespace tpsim
