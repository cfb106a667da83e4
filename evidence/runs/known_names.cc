#include "evidence/runs/known_names.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "core/base/text.h"
#include "evidence/runs/framework_name.h"
#include "evidence/runs/run_environment.h"

namespace tpsim {
namespace {

bool are_digits(std::string_view text, std::size_t from, std::size_t count) {
  if (text.size() < from + count) return false;
  const std::string_view digits = text.substr(from, count);
  return std::all_of(digits.begin(), digits.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns a model's name without case and punctuation: "Llama-4" and "llama 4" are equal.
std::string letters_of(const std::string& model) {
  std::string letters = in_lower_case(model);
  std::erase_if(letters, [](unsigned char c) { return std::isalnum(c) == 0; });
  return letters;
}

// Whether a release in the form YY.MM, such as "24.12", starts at `at` and is not part of a longer
// number.
bool is_release(std::string_view text, std::size_t at) {
  if (!are_digits(text, at, 2) || text.size() <= at + 2 || text[at + 2] != '.') return false;
  if (!are_digits(text, at + 3, 2) || are_digits(text, at + 5, 1)) return false;
  if (at > 0 && (are_digits(text, at - 1, 1) || text[at - 1] == '.')) return false;
  const std::string_view month = text.substr(at + 3, 2);
  return month >= "01" && month <= "12";
}

}  // namespace

void KnownNames::add(const std::string& aliases, const std::string& entry) {
  std::istringstream stream(aliases);
  for (std::string word; std::getline(stream >> std::ws, word, ',');) {
    Name name;
    name.found.entry = entry;
    const auto take = [&](std::string_view keyword, std::string& value) {
      const std::size_t place = word.find(keyword);
      if (place == std::string::npos) return;
      value = word.substr(place + keyword.size());
      word.erase(place);
    };
    take(" until ", name.until);
    take(" on ", name.gpu);
    take(" with ", name.found.parts);
    take(" of ", name.model);
    name.model = letters_of(name.model);
    std::istringstream parts(in_lower_case(word));
    for (std::string part; std::getline(parts, part, '+');) {
      const FrameworkName split = split_framework(part);
      if (split.zero) name.zero = split.zero;
      if (!split.name.empty()) name.words.push_back(split.name);
    }
    std::stable_sort(name.words.begin(), name.words.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    if (!name.words.empty() || name.zero) names_.push_back(std::move(name));
  }
}

const KnownNames::Found& KnownNames::called(const std::string& text, const std::string& month,
                                            std::optional<int> zero, const std::string& gpu,
                                            const std::string& model) const {
  static const Found kNone;
  const std::string lower = in_lower_case(text), model_letters = letters_of(model);
  const auto longest = [](const Name& name) {
    return name.words.empty() ? std::size_t{0} : name.words.front().size();
  };
  const Name* found = nullptr;
  for (const Name& name : names_) {
    if (name.zero && name.zero != zero) continue;
    if (!name.gpu.empty() && !is_gpu(gpu, name.gpu)) continue;
    if (model_letters.find(name.model) == std::string::npos) continue;
    const bool occurs =
        std::all_of(name.words.begin(), name.words.end(),
                    [&](const std::string& word) { return lower.find(word) != std::string::npos; });
    if (!occurs) continue;
    if (!name.until.empty() && (month.empty() || month > name.until)) continue;
    const auto is_nearer = [&] {  // the earliest "until" month is nearest; none is farthest
      if (longest(name) != longest(*found)) return longest(name) > longest(*found);
      if (name.words.size() != found->words.size()) return name.words.size() > found->words.size();
      if (name.zero.has_value() != found->zero.has_value()) return name.zero.has_value();
      if (name.model.size() != found->model.size()) return name.model.size() > found->model.size();
      if (name.gpu.empty() != found->gpu.empty()) return !name.gpu.empty();
      return !name.until.empty() && (found->until.empty() || name.until < found->until);
    };
    if (found == nullptr || is_nearer()) found = &name;
  }
  return found == nullptr ? kNone : found->found;
}

std::string month_of(const std::string& date, const std::string& software) {
  constexpr std::size_t kYear = 4, kMonth = 7;
  if (are_digits(date, 0, kYear)) {
    const bool has_month = date.size() >= kMonth && date[kYear] == '-' && are_digits(date, 5, 2);
    return has_month ? date.substr(0, kMonth) : date.substr(0, kYear) + "-12";
  }
  for (std::size_t at = 0; at < software.size(); ++at) {
    if (!is_release(software, at)) continue;
    return "20" + software.substr(at, 2) + "-" + software.substr(at + 3, 2);
  }
  return "";
}

}  // namespace tpsim
