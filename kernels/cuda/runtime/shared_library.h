// A shared library that is loaded on demand, so that programs also start where it is missing.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

class SharedLibrary {
 public:
  // Tries the file names, newest first. Searches the loader's paths (LD_LIBRARY_PATH, ld.so.cache),
  // then the folders of TPSIM_LIBRARY_PATH, CUDA_HOME and /usr/local/cuda. The `nvidia/*/lib`
  // folders of Python packages on PYTHONPATH and of VIRTUAL_ENV come last. kMissing lists all
  // places.
  static Result<SharedLibrary> open(const std::string& what, const std::vector<std::string>& names);

  // The path that was passed to the loader.
  const std::string& path() const { return path_; }

  // Error if the library lacks the function, because the library is older than the headers.
  template <class Function>
  Status find(const char* symbol, Function*& function) const {
    TPSIM_TRY(void* const address, address_of(symbol));
    function = reinterpret_cast<Function*>(address);
    return Ok{};
  }

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  Result<void*> address_of(const char* symbol) const;

  std::string path_;
  void* handle_;  // never closed: CUDA libraries do not support unloading
};

// For a function list LIST(DO) of DO(name, function): declares the members of a struct that hold
// the functions, and sets the members of `found` from `library`.
#define TPSIM_FUNCTION_MEMBER(name, function) decltype(&::function) name = nullptr;
#define TPSIM_FIND_FUNCTION(name, function) TPSIM_TRY_STATUS(library.find(#function, found.name));

// Returns the additional folders that open() searches, existing or not.
std::vector<std::string> library_folders();

}  // namespace tpsim
