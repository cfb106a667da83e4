#include "core/plan/pipeline_layout.h"

#include <cctype>
#include <string>

#include "core/base/leading_number.h"

namespace tpsim {
namespace {

// Limit on the length of an expanded layout, above any real model's.
constexpr std::size_t kLongest = 8192;
constexpr int kDeepestLayout = 8;

// Expands "Et*3|(tt|)*2L" to "Ettt|tt|tt|L".
class Layout {
 public:
  explicit Layout(std::string_view text) : text_(text) {}

  std::optional<std::string> flat() {
    auto all = sequence(0);
    return all && at_ == text_.size() ? all : std::nullopt;
  }

 private:
  std::optional<std::string> sequence(int depth) {
    std::string all;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_++];
      if (c == ',' || c == ' ') continue;
      std::string item(1, c);
      if (c == '(') {
        if (depth == kDeepestLayout) return std::nullopt;
        auto inside = sequence(depth + 1);
        if (!inside || at_ >= text_.size()) return std::nullopt;
        ++at_;
        item = *std::move(inside);
      } else if (std::string_view("Etm|L").find(c) == std::string_view::npos) {
        return std::nullopt;
      }
      const std::size_t times = repeats();
      if (times == 0 || item.size() * times > kLongest - all.size()) return std::nullopt;
      for (std::size_t i = 0; i < times; ++i) all += item;
    }
    return all;
  }

  // Returns the repeat count: 1 by default, 0 for an invalid number.
  std::size_t repeats() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::size_t end = ++at_;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) != 0) ++end;
    const auto number = parse_number<std::size_t>(text_.substr(at_, end - at_));
    at_ = end;
    return number && *number <= kLongest ? *number : 0;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<PipelineLayout> parse_pipeline_layout(std::string_view text) {
  const auto flat = Layout(text).flat();
  if (!flat || flat->size() < 2 || flat->front() != 'E' || flat->back() != 'L') return std::nullopt;
  PipelineLayout layout{{0}, 0};
  for (const char c : std::string_view(*flat).substr(1, flat->size() - 2)) {
    // MTP blocks must follow all other blocks.
    if (c == 'm') {
      ++layout.predictions;
    } else if (c == 't' && layout.predictions == 0) {
      ++layout.blocks.back();
    } else if (c == '|') {
      layout.blocks.push_back(0);
    } else {
      return std::nullopt;
    }
  }
  return layout;
}

}  // namespace tpsim
