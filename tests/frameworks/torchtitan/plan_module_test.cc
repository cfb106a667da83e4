// Settings that torchtitan's options do not state are in a module that the script writes.
#include "frameworks/torchtitan/plan_module.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "frameworks/launch/launch_files.h"
#include "tests/frameworks/launch/export_bases.h"

namespace tpsim {
namespace {

const test::ExportBase kMixture = {
    "qwen3-30b-a3b", "torchtitan", LaunchStack::kTorchTitan,
    "tp=2,dp=8,ep=8,etp=1,zero=3,sequence_parallel=on,recompute=full,global_batch=32"};

PartValues dispatched_by(Dispatcher dispatcher) {
  return {{StackPart::kDispatcher, static_cast<std::int64_t>(dispatcher)}};
}

Result<std::vector<LaunchFile>> files_of(const std::string& settings, const PartValues& parts) {
  const test::Exported made = test::exported_of(kMixture, settings, parts);
  return export_plan(LaunchStack::kTorchTitan, made.file, 8, made.own);
}

}  // namespace

TEST_CASE("a torchtitan script writes the module that changes precision and dispatcher") {
  const PartValues hybrid = dispatched_by(Dispatcher::kHybridEp);
  const auto files = files_of("precision=mxfp8", hybrid);
  REQUIRE(files.ok());
  REQUIRE(files->size() == 1);
  const std::string& script = files->front().text;
  CHECK_THAT(script, Catch::Contains("--module torchtitan_plan"));
  CHECK_THAT(script, Catch::Contains("--config hybridep_mxfp8"));
  CHECK_THAT(std::string(plan_module_in(script)), Catch::Contains("def __getattr__(names):"));
  const auto read =
      import_plan(LaunchStack::kTorchTitan, *files, test::exported_of(kMixture, "", {}).file.model);
  REQUIRE(read.ok());
  CHECK(read->plan.precision == Precision::kMxFp8);
  CHECK(read->parts.at(StackPart::kDispatcher) == hybrid.at(StackPart::kDispatcher));
}

TEST_CASE("a torchtitan script whose options state the plan has no module") {
  const auto files = files_of("", {});
  REQUIRE(files.ok());
  CHECK(plan_module_in(files->front().text).empty());
  CHECK_THAT(files->front().text, !Catch::Contains("--module"));
}

TEST_CASE("the module sets the attention backend of a stated kernel") {
  for (const auto& [kernel, backend] :
       {std::pair{AttentionKernel::kFlex, "flex"}, std::pair{AttentionKernel::kFlash3, "varlen"}}) {
    PartValues parts = dispatched_by(Dispatcher::kHybridEp);
    parts[StackPart::kAttentionKernel] = static_cast<std::int64_t>(kernel);
    const auto files = files_of("precision=mxfp8", parts);
    REQUIRE(files.ok());
    CHECK_THAT(files->front().text,
               Catch::Contains(fmt::format("--config {}_hybridep_mxfp8", backend)));
    const auto read = import_plan(LaunchStack::kTorchTitan, *files,
                                  test::exported_of(kMixture, "", {}).file.model);
    REQUIRE(read.ok());
    CHECK(read->parts.at(StackPart::kAttentionKernel) == parts.at(StackPart::kAttentionKernel));
  }
}

TEST_CASE("varlen attention with context parallelism is refused") {
  const PartValues varlen = {
      {StackPart::kAttentionKernel, static_cast<std::int64_t>(AttentionKernel::kFlash3)}};
  CHECK_THAT(files_of("dp=4,cp=2,ep=8", varlen).error().message,
             Catch::Contains("flash3 with context or pipeline parallelism"));
}

TEST_CASE("combinations of precision and dispatcher that torchtitan lacks are refused") {
  const PartValues deep = dispatched_by(Dispatcher::kDeepEp);
  CHECK_THAT(files_of("precision=fp8-current", deep).error().message,
             Catch::Contains("DeepEP with 8-bit experts"));
  CHECK_THAT(files_of("ep=1,etp=0", deep).error().message,
             Catch::Contains("the deepep dispatcher without expert parallelism"));
  CHECK_THAT(files_of("precision=fp8-block", {}).error().message,
             Catch::Contains("precision fp8-block"));
}

}  // namespace tpsim
