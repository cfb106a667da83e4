// An op's part of the model is stated where the op is issued.
#include <catch2/catch.hpp>

#include "kernels/ops.h"
#include "ranks/communicator.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

template <class... Labels>
concept LabelsFill = requires(Tensor x, Labels... labels) {
  Fill{x, 0.0F, labels...};
};

template <class... Labels>
concept LabelsBroadcast = requires(Communicator& group, Tensor x, Labels... labels) {
  group.broadcast(x, 0, labels...);
};

}  // namespace

TEST_CASE("ops and collectives without the part that they belong to do not compile") {
  CHECK(LabelsFill<Label>);
  CHECK_FALSE(LabelsFill<>);
  CHECK_FALSE(LabelsFill<const char*>);
  CHECK(LabelsBroadcast<Label>);
  CHECK_FALSE(LabelsBroadcast<>);
  CHECK_FALSE(LabelsBroadcast<const char*>);
}

TEST_CASE("an op's record carries its label") {
  const OpRecord record = describe(Fill{Tensor(), 0.0F, {ModelPart::kZeroGrad, "clear"}});
  CHECK(record.label.part == ModelPart::kZeroGrad);
  CHECK(std::string(record.label.text) == "clear");
}

}  // namespace tpsim
