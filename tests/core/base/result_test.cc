// Errors as values, and exceptions as errors.
#include "core/base/result.h"

#include <catch2/catch.hpp>
#include <new>
#include <stdexcept>

namespace tpsim {

TEST_CASE("memory that runs out is no bug") {
  CHECK(error_from(std::bad_alloc()).kind == ErrorKind::kDoesNotFit);
  CHECK(error_from(std::bad_array_new_length()).kind == ErrorKind::kDoesNotFit);
  // What a container says that is asked to hold more than there can be.
  CHECK(error_from(std::length_error("vector::reserve")).kind == ErrorKind::kDoesNotFit);
  CHECK_FALSE(error_from(std::bad_alloc()).hint.empty());
}

TEST_CASE("any other exception that nobody caught is a bug, with what it says") {
  const Error bug = error_from(BugError("a.cc:1: check failed"));
  CHECK(bug.kind == ErrorKind::kBug);
  CHECK(bug.message == "a.cc:1: check failed");
  CHECK(error_from(std::runtime_error("x")).kind == ErrorKind::kBug);
}

}  // namespace tpsim
