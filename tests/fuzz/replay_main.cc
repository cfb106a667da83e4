// Runs every input of the corpora, and of the tree's own data, through its target. Inputs that once
// broke a reader are therefore part of each test run, with any compiler. Prints the number of
// inputs.
//
// Usage: tpsim_fuzz_replay SOURCE_FOLDER [TARGET...]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz_target.h"

namespace {

namespace fs = std::filesystem;
using tpsim::fuzz::FuzzTarget;

// Also runs truncated inputs and inputs with one changed byte.
void run_near(const FuzzTarget& target, const std::string& input) {
  target.run(input);
  for (std::size_t part = 1; part < 8; ++part) {
    const std::size_t at = input.size() * part / 8;
    target.run(std::string_view(input).substr(0, at));
    std::string changed = input;
    if (at < changed.size()) changed[at] = static_cast<char>(changed[at] ^ 0x11);
    target.run(changed);
  }
}

int replay(const FuzzTarget& target, const fs::path& path) {
  if (fs::is_directory(path)) {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(path)) count += replay(target, entry.path());
    return count;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string input{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::fprintf(stderr, "%s %s\n", std::string(target.name).c_str(), path.c_str());
  run_near(target, input);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const fs::path source = argv[1];
  int inputs = 0;
  for (const FuzzTarget& target : tpsim::fuzz::targets()) {
    if (argc > 2 && std::find(argv + 2, argv + argc, target.name) == argv + argc) continue;
    target.run("");
    const fs::path corpus = source / "tests/fuzz/corpus" / target.name;
    if (fs::exists(corpus)) inputs += replay(target, corpus);
    for (const std::string_view seeds : target.seeds) inputs += replay(target, source / seeds);
  }
  std::printf("%d inputs read\n", inputs);
  return inputs > 0 ? 0 : 1;
}
