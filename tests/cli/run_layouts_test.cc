// `tpsim run` compared with PyTorch's float64 losses and gradients (tests/golden), and with sizes
// that no layout divides.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/cli/golden_runs.h"

namespace tpsim::test {
namespace {

struct Layout {
  int ranks;
  std::string arguments;
};

std::vector<Layout> layouts_of(const std::string& model) {
  std::vector<Layout> layouts = {
      {6, "--tp 2 --pp 3 --dp 1 --zero 1 --micro-batch 1"},
      {4, "--tp 2 --dp 2 --zero 2 --micro-batch 2"},
      {4, "--pp 2 --dp 2 --zero 3 --micro-batch 1"},
      {2, "--pp 2 --virtual-stages 2 --schedule interleaved --micro-batch 1"},
      {4, "--tp 2 --pp 2 --sequence-parallel on --recompute full --micro-batch 4"},
      {4, "--dp 4 --zero 3 --recompute selective --micro-batch 1"},
      {2, "--tp 2 --attention flash --micro-batch 8"},
      {2, "--pp 2 --recompute blocks:1 --micro-batch 2"},
  };
  if (model == "bloom-tiny") layouts.push_back({3, "--tp 3 --sequence-parallel on"});
  return layouts;
}

// A model with sizes that layouts do not divide: 5 layers, vocab size 257.
std::string odd_model(const Folder& folder) {
  const std::filesystem::path path = folder / "config.json";
  std::ofstream(path) << R"({"architectures": ["BloomForCausalLM"], "model_type": "bloom",
    "layer_norm_epsilon": 1e-5, "initializer_range": 0.05, "hidden_dropout": 0.0,
    "attention_dropout": 0.0, "apply_residual_connection_post_layernorm": false,
    "hidden_size": 48, "n_head": 6, "n_layer": 5, "vocab_size": 257})";
  return " --model " + path.string() + " --dtype fp32 --json ";
}

void check_same_losses(const std::vector<Step>& a, const std::vector<Step>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE_FALSE(a.empty());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].loss == Approx(b[i].loss).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("tpsim run follows PyTorch's losses and gradients in every layout") {
  for (const std::string model : {"bloom-tiny", "llama-tiny"}) {
    for (const Layout& layout : layouts_of(model)) {
      INFO(model << " " << layout.arguments);
      const Folder folder;
      const std::string arguments = golden_arguments(model) + layout.arguments +
                                    " --global-batch 8 --steps 12 --dump-gradients " +
                                    (folder / "gradients.safetensors").string();
      check_losses(model, 12, trained(tpsim_run(arguments)), 1e-5);
      check_gradients(model, folder / "gradients.safetensors");
    }
  }
}

TEST_CASE("tpsim run under mpirun follows PyTorch's losses and gradients in every layout",
          "[mpirun]") {
  for (const std::string model : {"bloom-tiny", "llama-tiny"}) {
    for (const Layout& layout : layouts_of(model)) {
      INFO(model << " " << layout.arguments);
      const Folder folder;
      const std::string arguments = golden_arguments(model) + layout.arguments +
                                    " --global-batch 8 --steps 12 --dump-gradients " +
                                    (folder / "gradients.safetensors").string();
      check_losses(model, 12, trained(under_mpirun(layout.ranks, arguments)), 1e-5);
      check_gradients(model, folder / "gradients.safetensors");
    }
  }
}

TEST_CASE("an expert layout that differs from attention's follows PyTorch under mpirun",
          "[mpirun]") {
  for (const Layout& layout :
       {Layout{8, "--tp 2 --dp 4 --ep 8 --etp 1 --sequence-parallel on --zero 1 --micro-batch 2"},
        Layout{8, "--tp 2 --pp 2 --dp 2 --ep 2 --etp 2 --sequence-parallel on --micro-batch 4"},
        Layout{4, "--cp 2 --dp 2 --ep 4 --zero 2 --micro-batch 2"}}) {
    INFO(layout.arguments);
    const Folder folder;
    const std::string arguments = golden_arguments("mixtral-tiny") + layout.arguments +
                                  " --global-batch 8 --steps 12 --dump-gradients " +
                                  (folder / "gradients.safetensors").string();
    check_losses("mixtral-tiny", 12, trained(under_mpirun(layout.ranks, arguments)), 1e-5);
    check_gradients("mixtral-tiny", folder / "gradients.safetensors");
  }
}

TEST_CASE("under mpirun overlapping the gradient reduction with backward does not change a bit",
          "[mpirun]") {
  for (const std::string zero : {"0", "1", "2", "3"}) {
    INFO("zero " << zero);
    const std::string common = " --micro-batch 1 --global-batch 8 --zero " + zero;
    CHECK(reduces_alike(2, golden_arguments("llama-tiny") + "--dp 2" + common));
    CHECK(reduces_alike(4, golden_arguments("bloom-tiny") + "--tp 2 --dp 2" + common));
  }
  CHECK(reduces_alike(4, golden_arguments("mixtral-tiny") +
                             "--dp 4 --ep 2 --zero 2 --micro-batch 1 --global-batch 8"));
}

TEST_CASE("under mpirun neither overlapped sums nor overwritten gradients change a bit",
          "[mpirun]") {
  for (const char* sequence_parallel : {"off", "on"}) {
    const std::string layout = " --tp 2 --dp 2 --zero 1 --micro-batch 1 --global-batch 8 " +
                               std::string("--sequence-parallel ") + sequence_parallel;
    for (const char* model : {"bloom-tiny", "llama-tiny"}) {
      CHECK(trains_alike(4, golden_arguments(model) + layout,
                         {"--tp-overlap none", "--tp-overlap reductions"}));
      CHECK(trains_alike(4, golden_arguments(model) + layout,
                         {"--gradient-accumulation fused", "--gradient-accumulation overwriting"}));
    }
  }
}

TEST_CASE("the number of processes must equal the plan's ranks", "[mpirun]") {
  const Finished refused = run(under_mpirun(3, golden_arguments("bloom-tiny") + "--tp 2 --pp 2"));
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  const std::string message =
      "tpsim: error: the plan has tp 2 x pp 2 x dp 1 = 4 ranks, but 3 processes were started";
  const std::size_t first = refused.err.find(message);
  CHECK(first != std::string::npos);
  CHECK(refused.err.find("tpsim: ", first + 1) == std::string::npos);
  const Finished with_context =
      run(under_mpirun(3, golden_arguments("llama-tiny") + "--tp 2 --cp 2"));
  CHECK(
      with_context.err.find("the plan has tp 2 x cp 2 x pp 1 x dp 1 = 4 ranks, but 3 processes") !=
      std::string::npos);
}

TEST_CASE("half precision stays within 1 % of PyTorch's losses") {
  for (const std::string dtype : {"bf16", "fp16"}) {
    for (const std::string model : {"bloom-tiny", "llama-tiny"}) {
      const std::string arguments = golden_arguments(model, "cpu", dtype);
      INFO(model << " " << dtype);
      check_losses(
          model, 12,
          trained(tpsim_run(arguments + "--tp 2 --dp 2 --zero 1 --global-batch 8 --steps 12")),
          1e-2);
    }
  }
}

TEST_CASE("fp16 is refused if a step has so many tokens that its gradients underflow") {
  const Finished refused =
      run(tpsim_run("--model bloom-560m --dtype fp16 --micro-batch 1 --global-batch 64"));
  CHECK(refused.code == 2);
  CHECK(refused.err.find("fp16 gradients underflow with 131072 tokens") != std::string::npos);
}

// FP8 numbers have three mantissa bits, or two for gradients with a scale per tensor. The relative
// error of a GEMM of length n is about 1 / 16 / sqrt(n), as is the error of these losses.
TEST_CASE("8-bit GEMMs stay within 3 % of PyTorch's losses") {
  for (const std::string recipe : {"fp8", "fp8-current", "fp8-block", "mxfp8"}) {
    for (const std::string model : {"bloom-tiny", "llama-tiny"}) {
      const std::string arguments = golden_arguments(model, "cpu", "bf16");
      INFO(model << " " << recipe);
      const std::vector<Step> rounded =
          trained(tpsim_run(arguments + "--tp 2 --dp 2 --zero 1 --global-batch 8 --steps 12 " +
                            "--precision " + recipe));
      check_losses(model, 12, rounded, 3e-2);
    }
  }
  const Finished narrower =
      run(tpsim_run(golden_arguments("llama-tiny", "cpu", "bf16") + "--precision nvfp4"));
  CHECK(narrower.code == 2);
  CHECK(narrower.err.find("precision=nvfp4 can be predicted, but tpsim cannot execute it") !=
        std::string::npos);
}

TEST_CASE("rounding to 8 bits changes losses") {
  const auto losses = [](const std::string& recipe) {
    return trained(tpsim_run(golden_arguments("llama-tiny", "cpu", "bf16") +
                             "--global-batch 8 --steps 4 --precision " + recipe));
  };
  const std::vector<Step> exact = losses("none"), rounded = losses("mxfp8");
  REQUIRE(exact.size() == rounded.size());
  CHECK(exact.front().loss != rounded.front().loss);
}

TEST_CASE("sizes that a layout does not divide train alike") {
  const Folder folder;
  const std::string model = odd_model(folder);
  const std::string batch = "--seq 13 --global-batch 4 --steps 4 ";
  const std::vector<Step> one = trained(tpsim_run(model + batch));
  // Padded vocabulary, uneven stages, and tp equal to the number of heads.
  for (const std::string layout :
       {"--tp 2", "--pp 3", "--tp 3 --pp 2", "--tp 6", "--dp 4 --zero 2", "--pp 2 --dp 2"}) {
    INFO(layout);
    check_same_losses(trained(tpsim_run(model + batch + layout)), one);
  }
}

TEST_CASE("one token, one sequence, one micro-batch are enough to train") {
  const Folder folder;
  const std::string model = odd_model(folder);
  const std::string batch = "--seq 1 --global-batch 1 --steps 3 ";
  const std::vector<Step> one = trained(tpsim_run(model + batch));
  for (const std::string layout : {"--tp 6", "--pp 4", "--tp 2 --pp 2", "--attention flash"}) {
    INFO(layout);
    check_same_losses(trained(tpsim_run(model + batch + layout)), one);
  }
}

TEST_CASE("heads that tp does not divide are refused with the nearest choice") {
  const Finished heads = run(tpsim_run(golden_arguments("bloom-tiny") + "--tp 4"));
  CHECK(heads.code == 2);
  CHECK(heads.err.find("6 attention heads are not divisible by tp = 4") != std::string::npos);
  CHECK(heads.err.find("the nearest valid tp is 3") != std::string::npos);
  const Finished kv_heads = run(tpsim_run(golden_arguments("llama-tiny") + "--tp 3"));
  CHECK(kv_heads.code == 2);
  CHECK(kv_heads.err.find("2 key/value heads are neither a multiple nor a divisor of tp = 3") !=
        std::string::npos);
  CHECK(kv_heads.err.find("the nearest valid tp is 2") != std::string::npos);
}

TEST_CASE("a token file that is shorter than the run is read again from its start") {
  std::string arguments = golden_arguments("bloom-tiny") + "--global-batch 8 ";
  arguments.replace(arguments.find("--lr 1e-3"), 9, "--lr 0");
  const std::vector<Step> steps = trained(tpsim_run(arguments + "--steps 14"));
  REQUIRE(steps.size() == 14);
  // With a learning rate of zero, the same tokens give the same loss.
  CHECK(steps[12].loss == steps[0].loss);
  CHECK(steps[13].loss == steps[1].loss);
  CHECK(steps[1].loss != steps[0].loss);
}

}  // namespace tpsim::test
