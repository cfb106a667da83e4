// Run tables: valid rows, and errors with file and line.
#include "evidence/runs/run_table.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/files.h"
#include "core/scenario/catalogue.h"
#include "evidence/runs/run_model.h"

namespace tpsim {
namespace {

std::string table(const std::string& rows) { return std::string(run_table_header()) + "\n" + rows; }

// A row with one field set, all others empty.
std::string field_row(const std::string& name, const std::string& value) {
  std::string line = "r1";
  const std::string header(run_table_header());
  std::size_t at = header.find(',');
  while (at != std::string::npos) {
    const std::size_t next = header.find(',', at + 1);
    const std::string column = header.substr(at + 1, next - at - 1);
    line += "," + (column == name ? value : column == "outcome" ? "ok" : "");
    at = next;
  }
  return line + "\n";
}

// A row with only an id.
std::string row(const std::string& id) {
  std::string line = field_row("", "");
  return line.replace(0, 2, id);
}

}  // namespace

TEST_CASE("an empty field was not stated") {
  const auto runs = parse_run_table(table(row("r1")), "t.csv");
  REQUIRE(runs.ok());
  REQUIRE(runs->size() == 1);
  CHECK((*runs)[0].id == "r1");
  CHECK((*runs)[0].line == 2);
  CHECK((*runs)[0].tp == 0);
  CHECK_FALSE((*runs)[0].step_s.has_value());
}

TEST_CASE("a plan setting without a predefined column is stated by its key") {
  const auto runs = parse_run_table(table(field_row("rank_order", "tp-pp-dp")), "t.csv");
  REQUIRE(runs.ok());
  CHECK((*runs)[0].settings.at(Setting::kRankOrder) == "tp-pp-dp");
  // A value that no plan has is kept. It makes only this row unpredictable (docs/runs.md).
  const auto unknown = parse_run_table(table(field_row("offload", "disk")), "t.csv");
  REQUIRE(unknown.ok());
  CHECK((*unknown)[0].settings.at(Setting::kOffload) == "disk");
  const auto part = parse_run_table(table(field_row("norm_kernel", "torch")), "t.csv");
  REQUIRE(part.ok());
  CHECK((*part)[0].parts.at(StackPart::kNormKernel) == "torch");
}

TEST_CASE("quoted fields hold commas, quotes and line breaks") {
  const auto runs = parse_run_table(table(field_row("source", "\"a, \"\"b\"\"\nc\"")), "t.csv");
  REQUIRE(runs.ok());
  CHECK((*runs)[0].source == "a, \"b\"\nc");
}

TEST_CASE("a stated range counts as its middle") {
  const auto runs = parse_run_table(table(field_row("hw_tflops_per_gpu", "149-150")), "t.csv");
  REQUIRE(runs.ok());
  CHECK(*(*runs)[0].hardware_tflops_per_gpu == Approx(149.5));
}

TEST_CASE("errors name file, line and column") {
  const auto bad = parse_run_table(table(row("r1") + field_row("tp", "four")), "t.csv");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().where == "t.csv:3");
  CHECK(bad.error().message.find("tp is 'four'") != std::string::npos);
}

TEST_CASE("too many layers are refused") {
  CHECK(parse_run_table(table(field_row("layers", "1000000")), "t.csv").ok());
  const auto bad = parse_run_table(table(field_row("layers", "1000000000000")), "t.csv");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message.find("layers is '1000000000000'") != std::string::npos);
}

TEST_CASE("columns may have any order, and optional ones may be missing") {
  const auto runs = parse_run_table(
      "\xEF\xBB\xBFseq,heads,hidden,layers,tp,pp,dp,global_batch,micro_batch,id\n"
      "1024,8,512,4,1,2,3,24,2,r1\n",
      "t.csv");
  REQUIRE(runs.ok());
  const PublishedRun& run = runs->front();
  CHECK(run.id == "r1");
  CHECK(run.dp == 3);
  CHECK(run.micro_batch == 2);
  CHECK(run.outcome == "ok");
  CHECK_FALSE(run.step_s.has_value());
}

TEST_CASE("an unknown column concerns the rows with a value in it") {
  const auto runs =
      parse_run_table("id,soft_prompt,tp,tokens_per_s_gpu\na,lora,1,\nb,,2,\nc,,1,9\n", "t.csv");
  REQUIRE(runs.ok());
  CHECK(runs->at(0).unknown == "unknown column 'soft_prompt': docs/runs.md lists the columns");
  CHECK(runs->at(1).unknown.empty());
  CHECK(runs->at(1).tp == 2);
  CHECK(runs->at(2).unknown ==
        "unknown column 'tokens_per_s_gpu': did you mean tokens_per_s_per_gpu?");
}

TEST_CASE("missing headers and repeated columns are refused") {
  CHECK_THAT(parse_run_table("", "t.csv").error().message, Catch::Contains("has no header"));
  CHECK(parse_run_table("x,x\n", "t.csv").error().message == "the column 'x' appears twice");
  CHECK(parse_run_table("id,id\n", "t.csv").error().message == "the column 'id' appears twice");
}

TEST_CASE("docs/runs.md shows all columns") {
  const auto page = read_file(std::filesystem::path(TPSIM_SOURCE_DIR) / "docs/runs.md", 1 << 20);
  REQUIRE(page.ok());
  CHECK(page->find("\n" + std::string(run_table_header()) + "\n") != std::string::npos);
}

TEST_CASE("a row without an id is named by its line") {
  const auto runs = parse_run_table("model,tp\nbloom-7b1,1\nbloom-7b1,2\n", "t.csv");
  REQUIRE(runs.ok());
  CHECK(runs->at(1).id == "line-3");
}

TEST_CASE("a wrong header, a short row, a second id and an unclosed quote are refused") {
  CHECK(parse_run_table(table("r1,ok\n"), "t.csv").error().where == "t.csv:2");
  CHECK(parse_run_table(table(row("r1") + row("r1")), "t.csv").error().where == "t.csv:3");
  CHECK_FALSE(parse_run_table(table("\"r1\n"), "t.csv").ok());
  CHECK_FALSE(parse_run_table(table(field_row("step_s", "-1")), "t.csv").ok());
  CHECK_FALSE(parse_run_table(table(field_row("step_s", "nan")), "t.csv").ok());
}

TEST_CASE("a row's model has the catalogue's shape if its sizes agree") {
  CatalogueModels models(Catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data"));
  PublishedRun run;
  run.model = "deepseek-v3-4l";
  run.layers = 4;
  run.hidden = 7168;
  run.heads = run.kv_heads = 128;
  run.ffn_hidden = run.shared_ffn = 2048;
  run.seq = 4096;
  run.experts = 256;
  run.experts_per_token = 8;
  run.dense_layers = 1;
  const std::optional<ModelSpec> model = models.of(run);
  REQUIRE(model.has_value());
  CHECK(model->layers == 4);
  CHECK(model->attention.latent.kv_rank == 512);
  CHECK(block_of_kind(*model, block_kind(*model, 0)).experts.count == 0);
  CHECK(block_of_kind(*model, block_kind(*model, 1)).experts.count == 256);
  run.hidden = 4096;  // another model
  CHECK_FALSE(models.of(run).has_value());
  // Without a catalogue model, a dense block is as wide as 8 chosen experts and a shared one.
  const ModelSpec columns = model_of(run, {});
  CHECK(block_of_kind(columns, block_kind(columns, 0)).ffn_hidden == 9 * 2048);
}

TEST_CASE("a row decides whether experts drop tokens, else the catalogue") {
  CatalogueModels models(Catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data"));
  PublishedRun run;
  run.model = "Mixtral-8x22B-v0.1";
  run.layers = 56;
  run.hidden = 6144;
  run.heads = 48;
  run.kv_heads = 8;
  run.ffn_hidden = 16384;
  run.seq = 4096;
  run.experts = 8;
  run.experts_per_token = 2;
  const auto drops = [&](const char* routing) {
    run.routing = routing;
    const std::optional<ModelSpec> model = models.of(run);
    REQUIRE(model.has_value());
    return !model->experts.dropless;
  };
  CHECK(drops(""));
  CHECK(drops("capacity"));
  CHECK_FALSE(drops("dropless"));
}

}  // namespace tpsim
