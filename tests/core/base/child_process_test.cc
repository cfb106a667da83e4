#include "core/base/child_process.h"

#include <catch2/catch.hpp>

namespace tpsim {

TEST_CASE("arguments reach a program unchanged, and its output is returned") {
  CHECK(output_of_program({"printf", "%s|%s", "a b", "$HOME"}).value() == "a b|$HOME");
  CHECK(output_of_program({"sh", "-c", "cat; echo gone >&2"}).value().empty());  // no input
  // More bytes than the pipe's buffer.
  CHECK(output_of_program({"head", "-c", "300000", "/dev/zero"}).value().size() == 300000);
}

TEST_CASE("a missing or failing program is an error with its name") {
  const auto missing = output_of_program({"tpsim-no-such-program"});
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().kind == ErrorKind::kMissing);
  CHECK(missing.error().where == "tpsim-no-such-program");
  CHECK(output_of_program({"sh", "-c", "exit 3"}).error().message == "exited with code 3");
  CHECK(output_of_program({"sh", "-c", "kill -9 $$"}).error().message == "was killed by signal 9");
}

}  // namespace tpsim
