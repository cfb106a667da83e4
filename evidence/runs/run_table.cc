#include "evidence/runs/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <variant>

#include "core/base/files.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

using Text = std::string PublishedRun::*;
using Whole = std::int64_t PublishedRun::*;
using Flag = std::optional<bool> PublishedRun::*;
using Number = std::optional<double> PublishedRun::*;

struct RunColumn {
  std::string_view name;
  std::variant<Text, Whole, Flag, Number, Setting, StackPart> field;
};

using R = PublishedRun;
const std::array<RunColumn, 57> kOwnColumns = {{
    {"id", &R::id},
    {"source", &R::source},
    {"date", &R::date},
    {"cluster", &R::cluster},
    {"regime", &R::regime},
    {"gpu", &R::gpu},
    {"gpus", &R::gpus},
    {"gpus_per_node", &R::gpus_per_node},
    {"model", &R::model},
    {"layers", &R::layers},
    {"hidden", &R::hidden},
    {"heads", &R::heads},
    {"kv_heads", &R::kv_heads},
    {"ffn_hidden", &R::ffn_hidden},
    {"gated_ffn", &R::gated_ffn},
    {"seq", &R::seq},
    {"vocab", &R::vocab},
    {"dtype", &R::dtype},
    {"framework", &R::framework},
    {"tp", &R::tp},
    {"sp", &R::sequence_parallel},
    {"cp", &R::cp},
    {"pp", &R::pp},
    {"vpp", &R::virtual_stages},
    {"dp", &R::dp},
    {"zero", &R::zero},
    {"micro_batch", &R::micro_batch},
    {"global_batch", &R::global_batch},
    {"recompute", &R::recompute},
    {"attention", &R::attention},
    {"grad_accum_dtype", &R::gradient_dtype},
    {"stage_split", &R::stage_split},
    {"step_s", &R::step_s},
    {"tokens_per_s_per_gpu", &R::tokens_per_s_per_gpu},
    {"hw_tflops_per_gpu", &R::hardware_tflops_per_gpu},
    {"mem_gb", &R::memory_gb},
    {"mem_kind", &R::memory_kind},
    {"outcome", &R::outcome},
    {"notes", &R::notes},
    {"head_dim", &R::head_dim},
    {"experts", &R::experts},
    {"experts_per_token", &R::experts_per_token},
    {"shared_ffn", &R::shared_ffn},
    {"dense_layers", &R::dense_layers},
    {"moe_every", &R::moe_every},
    {"mtp", &R::mtp},
    {"routing", &R::routing},
    {"load_balance", &R::load_balance},
    {"optimizer", &R::optimizer},
    {"precision_recipe", &R::precision_recipe},
    {"layout", &R::layout},
    {"node_gbps", &R::node_gbps},
    {"dropout", &R::dropout},
    {"model_tflops_per_gpu", &R::model_tflops_per_gpu},
    {"filled_from", &R::filled_from},
    {"same_release", &R::same_release},
    {"recipe_match", &R::recipe_match},
}};

// Plan settings that are stated by the columns above.
constexpr std::array kStatedAbove = {
    Setting::kTp,           Setting::kSequenceParallel, Setting::kCp,        Setting::kPp,
    Setting::kDp,           Setting::kVirtualStages,    Setting::kZero,      Setting::kMicroBatch,
    Setting::kGlobalBatch,  Setting::kRecompute,        Setting::kAttention, Setting::kDtype,
    Setting::kGradientDtype};

// Other names of columns for software parts.
constexpr std::array<std::pair<std::string_view, StackPart>, 4> kOtherNamesOfParts = {{
    {"adapter", StackPart::kFinetune},
    {"adapter_rank", StackPart::kLoraRank},
    {"adapter_targets", StackPart::kLoraTargets},
    {"trained_in_full", StackPart::kTrainedParts},
}};

// All columns: those above, and one for every other plan setting and software part.
std::span<const RunColumn> all_columns() {
  static const std::vector<RunColumn> columns = [] {
    std::vector<RunColumn> all(kOwnColumns.begin(), kOwnColumns.end());
    for (const SettingRow& row : setting_rows()) {
      const bool is_stated =
          std::find(kStatedAbove.begin(), kStatedAbove.end(), row.setting) != kStatedAbove.end();
      // The pipeline split is stated by the column stage_split.
      if (!is_stated && row.kind != FieldKind::kList) all.push_back({row.key, row.setting});
    }
    for (const PartRow& row : part_rows()) all.push_back({row.key, row.part});
    for (const auto& [name, part] : kOtherNamesOfParts) all.push_back({name, part});
    return all;
  }();
  return columns;
}

// Splits a table into records. A quoted field may contain commas, line breaks and doubled quotes.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool at_end() const { return at_ >= text_.size(); }
  int line() const { return line_; }

  Result<std::vector<std::string>> next_record() {
    std::vector<std::string> fields(1);
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '"' && fields.back().empty()) {
        TPSIM_TRY_STATUS(read_quoted(fields.back()));
      } else if (c == ',') {
        fields.emplace_back();
      } else if (c == '\n') {
        ++line_;
        break;
        // Ignores the "\r" of lines that end in "\r\n".
      } else if (c != '\r') {
        fields.back() += c;
      }
    }
    return fields;
  }

 private:
  Status read_quoted(std::string& field) {
    const int opened = line_;
    while (!at_end()) {
      const char c = text_[at_++];
      if (c == '\n') ++line_;
      if (c != '"') {
        field += c;
      } else if (!at_end() && text_[at_] == '"') {
        field += text_[at_++];
      } else {
        return Ok{};
      }
    }
    return bad_input("a quoted field has no closing quote", fmt::format("{}:{}", file_, opened));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// Returns a number, or the middle of a range "149-150".
std::optional<double> number_or_range(const std::string& text) {
  const std::size_t dash = text.find('-', 1);
  // A minus sign, as in "-1" or "1e-3", is not a range.
  if (dash == std::string::npos || text[dash - 1] == 'e') return parse_number<double>(text);
  const auto low = parse_number<double>(text.substr(0, dash));
  const auto high = parse_number<double>(text.substr(dash + 1));
  if (!low || !high || *high < *low) return std::nullopt;
  return (*low + *high) / 2;
}

// Sets a field of the row. Returns null, or the expected format if the text does not have it.
// Values of settings and parts are checked later: an unknown value prevents only the prediction of
// this row.
const char* take(PublishedRun& run, const RunColumn& column, const std::string& text) {
  if (const auto* field = std::get_if<Text>(&column.field)) {
    run.*(*field) = text;
    return nullptr;
  }
  if (text.empty()) return nullptr;
  if (const auto* setting = std::get_if<Setting>(&column.field)) {
    run.settings[*setting] = text;
    return nullptr;
  }
  if (const auto* part = std::get_if<StackPart>(&column.field)) {
    run.parts[*part] = text;
    return nullptr;
  }
  if (const auto* field = std::get_if<Whole>(&column.field)) {
    const auto value = parse_number<std::int64_t>(text);
    if (!value || *value < 0) return "a whole number";
    run.*(*field) = *value;
    return nullptr;
  }
  if (const auto* field = std::get_if<Flag>(&column.field)) {
    if (text != "0" && text != "1") return "0 or 1";
    run.*(*field) = text == "1";
    return nullptr;
  }
  const auto value = number_or_range(text);
  if (!value || !std::isfinite(*value) || *value < 0)
    return "a number of at least zero, or a range of two such numbers";
  run.*std::get<Number>(column.field) = *value;
  return nullptr;
}

struct TableColumn {
  const RunColumn* known = nullptr;
  std::string reason;  // why rows with a value in an unknown column cannot be predicted
};
using Columns = std::vector<TableColumn>;

// Returns the columns of a table in the order of its header.
Result<Columns> columns_of(const std::vector<std::string>& header, const std::string& file) {
  std::vector<std::string_view> names;
  for (const RunColumn& column : all_columns()) names.push_back(column.name);
  Columns columns;
  if (header.size() == 1 && header.front().empty()) {
    return bad_input("has no header: the first line of a run table names its columns", file,
                     "docs/runs.md lists the columns");
  }
  for (const std::string& name : header) {
    if (std::count(header.begin(), header.end(), name) > 1) {
      return bad_input(fmt::format("the column '{}' appears twice", name), file + ":1",
                       "remove one of the two");
    }
    TableColumn& column = columns.emplace_back();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      column.known = &all_columns()[static_cast<std::size_t>(found - names.begin())];
      continue;
    }
    column.reason = fmt::format("unknown column '{}': {}", name,
                                meant(nearest(name, names), "docs/runs.md lists the columns"));
  }
  return columns;
}

Result<PublishedRun> run_of(const std::vector<std::string>& fields, const Columns& columns,
                            int line, const std::string& file) {
  const std::string where = fmt::format("{}:{}", file, line);
  if (fields.size() != columns.size()) {
    return bad_input(
        fmt::format("the row has {} fields, but the header has {}", fields.size(), columns.size()),
        where, "quote fields that contain commas");
  }
  PublishedRun run;
  run.line = line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto& [column, reason] = columns[i];
    if (column == nullptr) {
      if (!fields[i].empty() && run.unknown.empty()) run.unknown = reason;
    } else if (const char* wanted = take(run, *column, fields[i])) {
      return bad_input(fmt::format("{} is '{}'; it must be {}", column->name, fields[i], wanted),
                       where);
    }
  }
  constexpr std::int64_t kMostLayers = 1'000'000;  // layers are stored one by one
  if (run.layers > kMostLayers) {
    return bad_input(fmt::format("layers is '{}'; it must be at most {}", run.layers, kMostLayers),
                     where);
  }
  if (run.id.empty()) run.id = fmt::format("line-{}", line);
  if (run.outcome.empty()) run.outcome = "ok";
  if (run.outcome != "ok" && run.outcome != "oom") {
    return bad_input(fmt::format("outcome is '{}'; it must be ok or oom", run.outcome), where);
  }
  return run;
}

}  // namespace

std::string_view run_table_header() {
  static const std::string header =
      joined_text(all_columns().first(all_columns().size() - kOtherNamesOfParts.size()), ",",
                  [](const RunColumn& column) { return column.name; });
  return header;
}

Result<std::vector<PublishedRun>> parse_run_table(std::string_view text, const std::string& file) {
  // Spreadsheets may start the text with a byte order mark.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  CsvReader reader(text, file);
  TPSIM_TRY(const std::vector<std::string> header, reader.next_record());
  TPSIM_TRY(const Columns columns, columns_of(header, file));
  std::vector<PublishedRun> runs;
  std::set<std::string> seen;
  while (!reader.at_end()) {
    // Read before the record, since a quoted field may span several lines.
    const int line = reader.line();
    TPSIM_TRY(const std::vector<std::string> fields, reader.next_record());
    if (fields.size() == 1 && fields.front().empty()) continue;  // an empty line
    TPSIM_TRY(PublishedRun run, run_of(fields, columns, line, file));
    if (!seen.insert(run.id).second) {
      return bad_input(fmt::format("the id '{}' appears twice", run.id),
                       fmt::format("{}:{}", file, line));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<std::vector<PublishedRun>> read_run_table(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostBytes));
  return parse_run_table(text, path.string());
}

}  // namespace tpsim
