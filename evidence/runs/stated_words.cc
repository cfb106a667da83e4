#include "evidence/runs/stated_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/software/optimizer_kinds.h"
#include "evidence/runs/framework_name.h"

namespace tpsim {
namespace {

struct DtypeWord {
  std::string_view words;  // as matches_any() reads them
  std::string_view dtype;
};
constexpr DtypeWord kDtypes[] = {
    {"bf16 bfloat16", "bf16"},
    {"fp16 float16 half 16", "fp16"},
    {"fp32 float32 float 32 tf32", "fp32"},
};
constexpr std::string_view kMixed = "amp autocast mixed";
constexpr std::string_view kPure = "pure true";

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : in_lower_case(text)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// FSDP and ZeRO 2 and 3 shard fp32 weights and cast what they gather, whether or not a run is
// called "mixed".
bool shards_weights(const PublishedRun& run) {
  const FrameworkName framework = split_framework(run.framework);
  return run.zero == "2" || run.zero == "3" || framework.zero.value_or(0) >= 2 ||
         framework.name.find("fsdp") != std::string::npos;
}

// Contents of a text that states a dtype.
struct DtypeRead {
  std::string_view dtype;
  bool is_mixed = false, is_pure = false, is_tf32 = false, is_known = true;
};

DtypeRead read_dtype(const std::string& text) {
  DtypeRead read;
  for (const std::string& word : words_of(text)) {
    const auto* row = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const auto& one) { return matches_any(word, one.words); });
    if (row != std::end(kDtypes) && read.dtype.empty()) {
      read.dtype = row->dtype;
      read.is_tf32 = word == "tf32";
    } else if (matches_any(word, kMixed)) {
      read.is_mixed = true;
    } else if (matches_any(word, kPure)) {
      read.is_pure = true;
    } else {
      read.is_known = false;
    }
  }
  return read;
}

}  // namespace

PublishedRun with_usual_words(PublishedRun run) {
  const DtypeRead read = read_dtype(run.dtype);
  if (read.is_known && !read.dtype.empty()) {
    run.dtype = read.dtype;
    const bool is_narrow = run.dtype != "fp32";
    if (read.is_tf32) run.parts.try_emplace(StackPart::kFp32Matmul, "tf32");
    if (read.is_pure && is_narrow) run.parts.try_emplace(StackPart::kMasterWeights, "none");
    if (read.is_mixed && is_narrow && !shards_weights(run)) {
      run.parts.try_emplace(StackPart::kMasterWeights, "autocast");
    }
  }
  const OptimizerRow* optimizer = optimizer_called(run.optimizer);
  if (optimizer != nullptr && optimizer->kind != OptimizerKind::kAdamW) {
    run.parts.try_emplace(StackPart::kOptimizerKind, name_of(optimizer->kind));
  }
  return run;
}

std::optional<Bytes> smaller_memory(const std::string& gpu, Bytes usual) {
  constexpr double kClearlyLess = 0.9;
  constexpr double kUsable = 0.99;  // share of the nominal memory that a process can allocate
  const std::string name = in_capitals(gpu);
  for (std::size_t end = name.find("GB"); end != std::string::npos;
       end = name.find("GB", end + 1)) {
    std::size_t digits = end;
    while (digits > 0 && name[digits - 1] == ' ') --digits;
    std::size_t begin = digits;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1])) != 0) --begin;
    const std::size_t length = digits - begin;
    if (length == 0 || length > 4) continue;
    const Bytes stated(std::stod(name.substr(begin, length)) * kGiB * kUsable);
    if (stated < kClearlyLess * usual) return stated;
  }
  return std::nullopt;
}

}  // namespace tpsim
