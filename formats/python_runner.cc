#include "formats/python_runner.h"

#include <span>

#include "core/base/child_process.h"
#include "core/base/files.h"

namespace tpsim {

extern const std::span<const unsigned char> kRecipesProgram;

namespace {

// Python runs with -I -S, so that no installed package is imported and the result is the same on
// every machine.
constexpr const char* kStart =
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)";

}  // namespace

Result<std::string> output_of_recipes(std::vector<std::string> words, const std::string& module) {
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  const std::filesystem::path archive = folder.path() / "tpsim_recipes.zip";
  const std::string_view bytes(reinterpret_cast<const char*>(kRecipesProgram.data()),
                               kRecipesProgram.size());
  TPSIM_TRY_STATUS(write_file_atomically(archive, bytes));
  std::vector<std::string> command = {"python3",        "-I",  "-S", "-c", kStart,
                                      archive.string(), module};
  command.insert(command.end(), words.begin(), words.end());
  Result<std::string> printed = output_of_program(std::move(command));
  if (!printed.ok() && printed.error().kind == ErrorKind::kMissing) {
    return Error{ErrorKind::kMissing, "python3 is missing, which tpsim runs to read this file", "",
                 "install it: apt-get install python3"};
  }
  return printed;
}

}  // namespace tpsim
