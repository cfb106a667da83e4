#include "tests/frameworks/launch/launch_plans.h"

#include <catch2/catch.hpp>

#include "core/scenario/catalogue.h"

namespace tpsim::test {

PlanFile file_of(const ModelSpec& model, const Plan& plan) {
  return {model, "jean-zay-a100", "a100-sxm4-80gb", "megatron-deepspeed", {}, plan};
}

PlanFile bloom_file() {
  const Result<Catalogue> catalogue = Catalogue::open();
  REQUIRE(catalogue.ok());
  Plan plan;
  plan.degrees = {.tp = 4, .pp = 12, .dp = 8};
  plan.micro_batch = 2;
  plan.global_batch = 2048;
  plan.stage_layers = even_stage_layers(70, 12, true);
  return file_of(catalogue->load_model("bloom-176b").value(), plan);
}

PlanFile llama_file() {
  const Result<Catalogue> catalogue = Catalogue::open();
  REQUIRE(catalogue.ok());
  Plan plan;
  plan.degrees = {.tp = 8, .pp = 4, .dp = 8};
  plan.virtual_stages = 5;
  plan.schedule = ScheduleKind::kInterleaved;
  plan.micro_batch = 1;
  plan.global_batch = 512;
  plan.sequence_parallel = true;
  plan.recompute = Recompute::kNone;
  plan.attention = AttentionKind::kFlash;
  plan.stage_layers = even_stage_layers(80, 20, false);
  PlanFile file = file_of(catalogue->load_model("llama-3-70b").value(), plan);
  file.stack = "megatron-lm";
  return file;
}

PlanFile titan_file() {
  PlanFile file = llama_file();
  file.plan.zero = 3;
  return file;
}

std::string without(std::string text, const std::string& part, const std::string& instead) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), instead);
}

bool holds_line(const std::string& text, const std::string& line) {
  return text.find("  " + line + "\n") != std::string::npos;
}

}  // namespace tpsim::test
