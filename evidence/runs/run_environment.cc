#include "evidence/runs/run_environment.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "evidence/runs/known_names.h"

namespace tpsim {
namespace {

void environment_fields(FieldReader& in, RunEnvironment& e) {
  in.text("cluster", e.cluster, kOptional);
  in.text("regime", e.regime, kOptional);
  in.text("gpu", e.gpu, kOptional);
  in.text("framework", e.framework, kOptional);
  in.text("source", e.source);
  in.text("runs_on", e.runs_on);
  in.text("stack", e.stack, kOptional);
  in.number("attention_dropout", e.attention_dropout, {0, 0.99}, kOptional);
  in.number("hidden_dropout", e.hidden_dropout, {0, 0.99}, kOptional);
  in.choice("position", e.position,
            {PositionKind::kAlibi, PositionKind::kLearned, PositionKind::kRotary}, kOptional);
  in.flag("embedding_norm", e.embedding_norm, kOptional);
  in.flag("tied_embedding", e.tied_embedding, kOptional);
  in.integer("vocab", e.vocab, {0, 1 << 24}, kOptional);
  in.integer("zero", e.zero, {0, 3}, kOptional);
  in.choice("dtype", e.dtype, {DType::kFloat32, DType::kBFloat16, DType::kFloat16}, kOptional);
  in.text("attention", e.attention, kOptional);
  in.flag("unpadded_vocabulary", e.unpadded_vocabulary, kOptional);
  in.flag("memory_only", e.memory_only, kOptional);
  in.flag("embedding_counts", e.embedding_counts, kOptional);
  in.text("gradient_dtype", e.gradient_dtype, kOptional);
  in.integer("blocks_per_chunk", e.blocks_per_chunk, {0, 1024}, kOptional);
  in.flag("sequence_parallel", e.sequence_parallel, kOptional);
  in.number("extra_spread", e.extra_spread, {0, 1}, kOptional);
  in.choice("memory", e.memory, {MeasuredMemory::kDevice, MeasuredMemory::kAllocated}, kOptional);
  std::string rows;
  in.text("calibration_rows", rows);
  e.calibration_rows = words_in(rows);
  const auto excluded = [](FieldReader& row, ExcludedRow& aside) {
    row.text("id", aside.id);
    row.text("reason", aside.reason);
  };
  in.objects("set_aside", e.excluded, excluded, kOptional);
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Whether the name contains the word at the start of a word: "H200" is in "NVIDIA H200 141GB", but
// not in "GH200". A number in the name starts a word ("4090" in "RTX4090"), and so do letters after
// a number.
bool has_word(const std::string& name, const std::string& word) {
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if (at == 0 || std::isalnum(static_cast<unsigned char>(name[at - 1])) == 0) return true;
    if (is_letter(name[at - 1]) != is_letter(name[at])) return true;
  }
  return false;
}

}  // namespace

bool is_gpu(const std::string& gpu, const std::string& wanted) {
  const std::string name = in_capitals(gpu), words_wanted = in_capitals(wanted);
  // A PCIe card of a data center GPU has about half the power of the SXM board, so it needs its own
  // match.
  const bool has_boards = words_wanted.starts_with('A') || words_wanted.starts_with('H');
  const auto is_card = [](const std::string& text) {
    return text.find("PCIE") != std::string::npos;
  };
  if (has_boards && is_card(name) && !is_card(words_wanted)) return false;
  std::istringstream words(words_wanted);
  for (std::string word; std::getline(words, word, '-');) {
    if (!has_word(name, word)) return false;
  }
  return true;
}

std::string_view name_of(MeasuredMemory memory) {
  return memory == MeasuredMemory::kDevice ? "device" : "allocated";
}

Result<std::vector<RunEnvironment>> read_run_environments(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  return parse_run_environments(text, path.string());
}

Result<std::vector<RunEnvironment>> parse_run_environments(std::string_view text,
                                                           const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  using Environments = std::vector<RunEnvironment>;
  return spec_from_json<Environments>(root, file, [](FieldReader& in, Environments& out) {
    in.format("tpsim-run-environments/1");
    in.objects("environments", out, environment_fields);
  });
}

const RunEnvironment* environment_of(const std::vector<RunEnvironment>& environments,
                                     const PublishedRun& run) {
  const std::string month = month_of(run.date, run.framework);
  const auto found = std::find_if(environments.begin(), environments.end(), [&](const auto& e) {
    if (!e.until.empty() && (month.empty() || month > e.until)) return false;
    return run.cluster.starts_with(e.cluster) && run.regime.starts_with(e.regime) &&
           is_gpu(run.gpu, e.gpu) && run.framework.starts_with(e.framework);
  });
  return found == environments.end() ? nullptr : &*found;
}

}  // namespace tpsim
