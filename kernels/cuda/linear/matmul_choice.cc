#include "kernels/cuda/linear/matmul_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <vector>

namespace tpsim {
namespace {

// Visits the decimal numbers of a choice in the order in which to_text() writes them. to_text()
// appends the 64-bit words of the algorithm in hexadecimal.
template <class Choice, class Visit>
void visit_numbers(Choice& choice, Visit visit) {
  auto& key = choice.key;
  for (auto& x : key.sizes) visit(x);
  for (auto& x : key.row_strides) visit(x);
  for (auto& x : key.batch_strides) visit(x);
  visit(key.alignment);
  visit(choice.workspace);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

template <class Number>
bool read(std::string_view word, int base, Number& number) {
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return code == std::errc() && end == word.data() + word.size();
}

bool read_dtype(std::string_view word, DType& dtype) {
  for (const DType one : {DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat8}) {
    if (word == name_of(one)) return dtype = one, true;
  }
  return false;
}

// Returns the text of a layout, for example "8nt+/54@116". "8": a is E5M2. "nt": a is not
// transposed, b is. "+": accumulates into c. "/54": kinds of the scales of a and b, as values of
// ScalesOf. "@116": maximum number of SMs.
std::string layout_text(const MatmulKey& key) {
  const auto [a, b] = key.scales;
  const bool has_blocks = a != ScalesOf::kTensor || b != ScalesOf::kTensor;
  return fmt::format(
      "{}{}{}{}{}{}", key.a_is_e5m2 ? "8" : "", key.transpose_a ? 't' : 'n',
      key.transpose_b ? 't' : 'n', key.accumulates ? "+" : "",
      has_blocks ? fmt::format("/{}{}", static_cast<int>(a), static_cast<int>(b)) : std::string(),
      key.multiprocessors > 0 ? fmt::format("@{}", key.multiprocessors) : std::string());
}

bool read_layout(std::string_view word, MatmulKey& key) {
  key.a_is_e5m2 = word.starts_with('8');
  const std::size_t at = word.find('@');
  if (at != std::string_view::npos && !read(word.substr(at + 1), 10, key.multiprocessors)) {
    return false;
  }
  const std::string_view letters = word.substr(0, at).substr(key.a_is_e5m2 ? 1 : 0);
  key.transpose_a = letters.starts_with('t');
  key.transpose_b = letters.substr(std::min<std::size_t>(1, letters.size())).starts_with('t');
  const std::size_t slash = letters.find('/');
  key.accumulates = letters.substr(0, slash).ends_with('+');
  if (slash != std::string_view::npos && letters.size() == slash + 3) {
    for (const std::size_t i : {0, 1}) {
      key.scales[i] = static_cast<ScalesOf>(letters[slash + 1 + i] - '0');
    }
  }
  return word == layout_text(key);
}

}  // namespace

std::string to_string(const MatmulKey& key) {
  return fmt::format("{} {} {} {} {} {} {}", layout_text(key), name_of(key.dtype),
                     name_of(key.output), fmt::join(key.sizes, " "),
                     fmt::join(key.row_strides, " "), fmt::join(key.batch_strides, " "),
                     key.alignment);
}

std::string to_text(const MatmulChoice& choice) {
  return fmt::format("{} {} {:x}", to_string(choice.key), choice.workspace,
                     fmt::join(choice.algorithm, " "));
}

Result<MatmulChoice> parse_matmul_choice(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  constexpr std::size_t kNumbers = 12;
  MatmulChoice choice;
  std::size_t at = 3;
  bool good = words.size() == at + kNumbers + choice.algorithm.size() &&
              read_layout(words[0], choice.key) && read_dtype(words[1], choice.key.dtype) &&
              read_dtype(words[2], choice.key.output);
  visit_numbers(choice, [&](auto& number) { good = good && read(words[at++], 10, number); });
  for (std::uint64_t& word : choice.algorithm) good = good && read(words[at++], 16, word);
  if (good) return choice;
  return bad_input(fmt::format("'{}' is not a valid cuBLASLt algorithm", text), "",
                   "measure the profile again with tpsim profile");
}

}  // namespace tpsim
