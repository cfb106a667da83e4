// Every hint in an error about a program's file works when it is followed.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/frameworks/launch/program_files.h"

namespace tpsim {

TEST_CASE("every hint in an error about a program's file works") {
  struct Remedy {
    std::string file;
    std::string change, by;  // replacement in the file's text
    std::int64_t gpus;
    std::string advice;  // part of the message
    std::map<std::string, std::string> given;
    std::int64_t gpus_given;
    bool assumes = false;
  };
  const std::vector<Remedy> all = {
      {"swift_megatron.sh",
       "--lr 1e-5",
       "--of_next_year 3",
       0,
       "of-next-year=null",
       {{"of-next-year", "null"}},
       0},
      {"swift_sft.sh",
       "--save_steps 50",
       "--of_next_year 3",
       0,
       "of_next_year=null",
       {{"of_next_year", "null"}},
       0},
      {"swift_sft.sh", "--save_steps 50", "--of_next_year 3", 0, "--assume-harmless", {}, 0, true},
      {"verl_fsdp.sh",
       "trainer.nnodes=2",
       "brand.new=3",
       0,
       "brand.new=null",
       {{"brand.new", "null"}},
       0},
      {"verl_fsdp.sh",
       "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
       "",
       0,
       "--set actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=N",
       {{"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "2"}},
       0},
      {"verl_sft.sh", "$1", "$GPUS", 0, "--gpus N", {}, 8},
      {"swift_megatron.sh",
       "--max_length 8192",
       "",
       0,
       "--set max_length=N",
       {{"max_length", "4096"}},
       0},
      {"primus.yaml", "", "", 0, "--gpus N", {}, 8},
      {"neox.yml",
       "\"checkpoint-num-layers\": 1",
       "\"checkpoint-num-layers\": 2",
       16,
       "--set checkpoint_num_layers=1",
       {{"checkpoint_num_layers", "1"}},
       16},
      {"neox.yml",
       "\"train-iters\": 1000",
       "\"of-next-year\": 3",
       16,
       "of-next-year=null",
       {{"of-next-year", "null"}},
       16},
      {"slime.sh",
       "--lr 1e-6",
       "--of-next-year 3",
       0,
       "of-next-year=null",
       {{"of-next-year", "null"}},
       0},
      {"torchtune.yaml",
       "device: cuda",
       "of_next_year: 3",
       8,
       "of_next_year=null",
       {{"of_next_year", "null"}},
       8},
      {"openrlhf.sh",
       "--ds.packing_samples",
       "--ds_of_next_year 3",
       8,
       "ds_of_next_year=null",
       {{"ds_of_next_year", "null"}},
       8},
  };
  for (const Remedy& one : all) {
    std::string text = read_file(kFiles / one.file, 1 << 20).value();
    if (!one.change.empty()) {
      const std::size_t at = text.find(one.change);
      REQUIRE(at != std::string::npos);
      text.replace(at, one.change.size(), one.by);
    }
    INFO(one.file << " " << one.advice);
    const auto open = import_text(one.file, text, beside(one.gpus));
    REQUIRE_FALSE(open.ok());
    CHECK_THAT(open.error().message + " " + open.error().hint, Catch::Contains(one.advice));
    ImportInputs followed = beside(one.gpus_given, one.given);
    followed.assumes_harmless = one.assumes;
    const auto plan = import_text(one.file, text, followed);
    if (!plan.ok()) FAIL_CHECK(to_string(plan.error()));
  }
}

}  // namespace tpsim
