// Frameworks of rows: name, version and ZeRO stage are parsed in one place.
#include "evidence/runs/framework_name.h"

#include <catch2/catch.hpp>

#include "evidence/runs/known_names.h"

namespace tpsim {
namespace {

TEST_CASE("a framework is split into name, version and ZeRO stage, in every spelling") {
  struct Case {
    const char *text, *name, *version;
    std::optional<int> zero;
  };
  for (const Case& one : {
           Case{"DeepSpeed 0.14.2, ZeRO-3", "deepspeed", "0.14.2", 3},
           Case{"DeepSpeed ZeRO-3", "deepspeed", "", 3},
           Case{"DeepSpeed 0.11.1 (ZeRO-3)", "deepspeed", "0.11.1", 3},
           Case{"deepspeed zero stage 2", "deepspeed", "", 2},
           Case{"DeepSpeed ZeRO_1", "deepspeed", "", 1},
           Case{"FlagScale.git@26cd664 (Megatron-LM)", "flagscale.git megatron-lm", "", {}},
           Case{"megatron-core core_v0.6.0", "megatron-core core", "0.6.0", {}},
           Case{"paddle-2.5.1 (PaddleNLP)", "paddle paddlenlp", "2.5.1", {}},
           Case{"PyTorch 2.0, torch.compile", "pytorch torch.compile", "2.0", {}},
           Case{"ZeRO-Infinity", "zero-infinity", "", {}},
           Case{"", "", "", {}},
       }) {
    const FrameworkName split = split_framework(one.text);
    CAPTURE(one.text);
    CHECK(split.name == one.name);
    CHECK(split.version == one.version);
    CHECK(split.zero == one.zero);
  }
}

TEST_CASE("the longest known name decides, then more names, then the ZeRO stage") {
  KnownNames names;
  names.add("transformers, DeepSpeed until 2023-01", "plain");
  names.add("FSDP+transformers, transformers ZeRO-3", "sharded");
  names.add("DeepSpeed+transformers, DeepSpeed ZeRO-3", "engine");
  names.add("Megatron-DeepSpeed", "megatron");
  const auto called = [&](const char* text, std::optional<int> zero) {
    return names.called(split_framework(text).name, "2024-01", zero).entry;
  };
  CHECK(called("HF Trainer (transformers)", {}) == "plain");
  CHECK(called("HF Trainer (transformers)", 3) == "sharded");
  CHECK(called("transformers, FSDP", {}) == "sharded");
  CHECK(called("DeepSpeed with transformers", {}) == "engine");
  CHECK(called("DeepSpeed with transformers", 3) == "engine");
  CHECK(called("deepspeed", 3) == "engine");
  CHECK(called("deepspeed", {}).empty());
  CHECK(called("Megatron-DeepSpeed", 3) == "megatron");
}

}  // namespace
}  // namespace tpsim
