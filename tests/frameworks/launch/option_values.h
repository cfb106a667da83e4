// The options of a command line and their values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/frameworks/launch/stack_options.h"

namespace tpsim::test {

using OptionValues = std::map<std::string, std::string>;

// Parses options like argparse without abbreviations. Repeated options are an error here, since
// argparse would silently use the last one. Returns the first error; empty if there is none.
std::string parse_options(const std::vector<std::string>& words, const std::vector<Option>& known,
                          OptionValues& values);

std::int64_t number(const OptionValues& values, const std::string& name, std::int64_t otherwise);
std::string word(const OptionValues& values, const std::string& name, const char* otherwise = "");
bool has(const OptionValues& values, const std::string& name);

}  // namespace tpsim::test
