// Runs the target of TPSIM_FUZZ_TARGET under libFuzzer.
//
// Random mutation rarely produces integer limits, at which readers of sizes and offsets fail. Half
// of the mutations here replace a number of the input by such a limit.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/fuzz/fuzz_target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using tpsim::fuzz::FuzzTarget;

const FuzzTarget& target() {
  for (const FuzzTarget& one : tpsim::fuzz::targets()) {
    if (one.name == TPSIM_FUZZ_TARGET) return one;
  }
  std::abort();
}

constexpr std::array kNumbers = {"0",
                                 "1",
                                 "-1",
                                 "2",
                                 "65535",
                                 "65536",
                                 "16777216",
                                 "2147483648",
                                 "4294967296",
                                 "1099511627776",
                                 "9007199254740993",
                                 "4611686018427387904",
                                 "9223372036854775800",
                                 "9223372036854775807",
                                 "18446744073709551615",
                                 "1e13",
                                 "1e300",
                                 "5e-324",
                                 "1e24",
                                 "0.5",
                                 "nan",
                                 "-0"};

// Replaces a number of the text.
std::string with_other_number(const std::string& text, std::minstd_rand& random) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto from = text.begin() + static_cast<std::ptrdiff_t>(random() % text.size());
  const auto begin = std::find_if(from, text.end(), is_digit);
  if (begin == text.end()) return text;
  const auto end = std::find_if_not(begin, text.end(), is_digit);
  return std::string(text.begin(), begin) + kNumbers[random() % kNumbers.size()] +
         std::string(end, text.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const FuzzTarget& one = target();
  one.run({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand random(seed);
  if (size == 0 || random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string changed = with_other_number(text, random);
  const std::size_t taken = std::min(changed.size(), most);
  std::copy_n(changed.begin(), taken, data);
  return taken;
}
