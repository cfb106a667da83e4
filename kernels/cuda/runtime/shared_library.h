// A library that is opened when it is needed, so that a program built with it starts without it.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

class SharedLibrary {
 public:
  // Tries the file names, newest first, by the loader's own rules (LD_LIBRARY_PATH, ld.so.cache),
  // then in the folders of TPSIM_LIBRARY_PATH, in CUDA_HOME and /usr/local/cuda, and in the
  // `nvidia/*/lib` folders of Python packages on PYTHONPATH and of VIRTUAL_ENV. kMissing names
  // everything that was tried.
  static Result<SharedLibrary> open(const std::string& what, const std::vector<std::string>& names);

  // The file that was opened, as the loader was asked for it.
  const std::string& path() const { return path_; }

  // Fails when the library lacks the function: it is older than the headers.
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
  void* handle_;  // never closed: libraries of CUDA do not survive it
};

// Of a list of functions, LIST(DO) standing for DO(name, function) of each: the members of a struct
// that hold them, and what fills those of `found` in from `library`.
#define TPSIM_FUNCTION_MEMBER(name, function) decltype(&::function) name = nullptr;
#define TPSIM_FIND_FUNCTION(name, function) TPSIM_TRY_STATUS(library.find(#function, found.name));

// The folders beside the loader's own that open() looks into, existing or not.
std::vector<std::string> library_folders();

}  // namespace tpsim
