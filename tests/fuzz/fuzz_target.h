// The campaign: one target for each reader of what others wrote.
//
// A target takes any bytes, and either refuses them as its reader should or holds what it read
// against a law (what is written reads back, terms add up). Anything else - an exception, a broken
// law, what a sanitizer or libFuzzer finds - is a failure. libFuzzer drives one target for each
// program (fuzz_main.cc); replay_main.cc runs all corpora, with any compiler.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpsim::fuzz {

struct FuzzTarget {
  std::string_view name;
  void (*run)(std::string_view bytes);
  // Folders or files of the tree that are inputs too, beside corpus/NAME.
  std::vector<std::string_view> seeds = {};
};

std::span<const FuzzTarget> targets();

// Ends the process where a law does not hold.
void demand(bool holds, const char* law);

// By readers: text_targets.cc, command_targets.cc, file_targets.cc, port_targets.cc and
// prediction_targets.cc.
void read_model(std::string_view bytes);
void read_cluster(std::string_view bytes);
void read_stack(std::string_view bytes);
void read_profile(std::string_view bytes);
void read_plan_file(std::string_view bytes);
void read_assumption_file(std::string_view bytes);
void read_json_text(std::string_view bytes);
void read_saved_view(std::string_view bytes);
void read_values(std::string_view bytes);
void read_run_table_text(std::string_view bytes);
void read_log(std::string_view bytes);
void read_report(std::string_view bytes);
void read_launch_files(std::string_view bytes);
void read_script(std::string_view bytes);
void read_program(std::string_view bytes);
void read_configuration(std::string_view bytes);
void read_command_line(std::string_view bytes);
void read_launcher_variables(std::string_view bytes);
void read_safetensors(std::string_view bytes);
void read_tokens(std::string_view bytes);
void read_checkpoint(std::string_view bytes);
void read_manifest(std::string_view bytes);
void answer_caller(std::string_view bytes);
void predict_inputs(std::string_view bytes);
void predict_drawn(std::string_view bytes);

}  // namespace tpsim::fuzz
