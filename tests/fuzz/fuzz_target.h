// Fuzzing: one target for each reader of foreign input.
//
// A target accepts any bytes. Either its reader returns an error, or the result satisfies a law,
// such as an exact round trip or terms that add up. An exception, a broken law, or a finding of a
// sanitizer or libFuzzer is a failure. libFuzzer runs one target per process (fuzz_main.cc);
// replay_main.cc runs all corpora, with any compiler.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tpsim::fuzz {

struct FuzzTarget {
  std::string_view name;
  void (*run)(std::string_view bytes);
  // Files or folders of the tree that are inputs in addition to corpus/NAME.
  std::vector<std::string_view> seeds = {};
};

std::span<const FuzzTarget> targets();

// Ends the process if a law is broken.
void demand(bool holds, const char* law);

// Targets by file: text_targets.cc, command_targets.cc, file_targets.cc, port_targets.cc and
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
