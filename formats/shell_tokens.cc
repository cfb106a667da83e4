#include <fmt/format.h>

#include <algorithm>

#include "formats/shell_words.h"

namespace tpsim {
namespace {

constexpr std::string_view kSeparators = ";&|()\n";

class ShellTokenizer {
 public:
  ShellTokenizer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Result<std::vector<ShellToken>> all() {
    while (at_ < text_.size()) TPSIM_TRY_STATUS(take());
    TPSIM_TRY_STATUS(read_documents());
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Error wrong(int line, std::string message) const {
    return bad_input(std::move(message), fmt::format("{}:{}", file_, line));
  }

  Status take() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r') return ++at_, Ok{};
    if (c == '\\' && peek(1) == '\n') return at_ += 2, ++line_, Ok{};
    if (c == '\\' && peek(1) == '\r' && peek(2) == '\n') return at_ += 3, ++line_, Ok{};
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return Ok{};
    }
    if (c == '<' || c == '>' || (c == '&' && peek(1) == '>')) return take_redirect();
    if (kSeparators.find(c) != std::string_view::npos) return take_separator();
    return take_word();
  }

  Status take_separator() {
    const std::string_view rest = text_.substr(at_);
    std::size_t length = 1;
    for (const std::string_view two : {";;", "&&", "||"}) {
      if (rest.starts_with(two)) length = 2;
    }
    tokens_.push_back({.kind = ShellTokenKind::kSeparator,
                       .text = std::string(rest.substr(0, length)),
                       .line = line_});
    at_ += length;
    if (rest.front() != '\n') return Ok{};
    ++line_;
    return read_documents();
  }

  // Reads a redirection: ">file", ">&1" or "<<EOF". take_word() drops the number before it, as in
  // "2>&1".
  Status take_redirect() {
    ShellToken token{.kind = ShellTokenKind::kRedirect, .line = line_};
    const bool is_document = text_.substr(at_).starts_with("<<") && peek(2) != '<';
    while (peek() == '<' || peek() == '>' || peek() == '&') token.text += text_[at_++];
    if (is_document && peek() == '-') ++at_;
    while (peek() == ' ' || peek() == '\t') ++at_;
    TPSIM_TRY(std::string target, raw_word());
    if (is_document) {
      token.is_document = true;
      token.is_expanded = target.find_first_of("'\"\\") == std::string::npos;
      std::erase_if(target, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
      documents_.push_back({tokens_.size(), target, line_});
    }
    token.text = std::move(target);
    tokens_.push_back(std::move(token));
    return Ok{};
  }

  // Reads the text of here-documents, which starts after the line that contains their operators.
  Status read_documents() {
    for (const Document& document : documents_) {
      std::string body;
      for (;;) {
        if (at_ >= text_.size()) {
          return wrong(document.line,
                       fmt::format("the here-document <<{} is not closed", document.end));
        }
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        const std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        ++line_;
        const std::size_t start = std::min(line.find_first_not_of('\t'), line.size());
        const std::size_t last = line.ends_with('\r') ? 1 : 0;
        if (line.substr(start, line.size() - start - last) == document.end) break;
        body += std::string(line) + "\n";
      }
      tokens_[document.token].text = std::move(body);
    }
    documents_.clear();
    return Ok{};
  }

  Status take_word() {
    ShellToken token{.line = line_};
    TPSIM_TRY(token.text, raw_word());
    const bool is_number = token.text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && (peek() == '<' || peek() == '>')) return Ok{};
    if (token.text.ends_with('=') && peek() == '(') TPSIM_TRY_STATUS(take_array(token));
    tokens_.push_back(std::move(token));
    return Ok{};
  }

  Status take_array(ShellToken& token) {
    token.is_array = true;
    ++at_;
    for (;;) {
      const char c = peek();
      if (c == '\0')
        return wrong(token.line, fmt::format("the array {}( is not closed", token.text));
      if (c == ')') return ++at_, Ok{};
      if (c == '\n') ++line_;
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\\' && peek(1) == '\n') {
        at_ += 2;
        ++line_;
      } else if (std::string_view(" \t\r\n;&|").find(c) != std::string_view::npos) {
        ++at_;
      } else {
        TPSIM_TRY(token.elements.emplace_back(), raw_word());
      }
    }
  }

  // Reads a word with its quotes and substitutions unchanged.
  Result<std::string> raw_word() {
    const int line = line_;
    std::string word;
    while (at_ < text_.size()) {
      const char c = peek();
      const bool ends = c == ' ' || c == '\t' || c == '\r' || c == '<' || c == '>' ||
                        kSeparators.find(c) != std::string_view::npos;
      if (ends) break;
      if (c == '\\' && peek(1) == '\n') {
        at_ += 2;
        ++line_;
        continue;
      }
      const std::size_t length = piece_length();
      if (length == 0)
        return wrong(line, fmt::format("the text that starts with {} is not closed", c));
      const std::string_view piece = text_.substr(at_, length);
      line_ += static_cast<int>(std::count(piece.begin(), piece.end(), '\n'));
      word += piece;
      at_ += length;
    }
    if (word.empty() && at_ < text_.size()) word += text_[at_++];  // a lone "<" or ">"
    return word;
  }

  // Returns the length of the next part: a quoted text, a substitution, an escape or a single
  // character. 0 if the part is not closed.
  std::size_t piece_length() const {
    const std::string_view rest = text_.substr(at_);
    switch (rest.front()) {
      case '\\': return std::min<std::size_t>(2, rest.size());
      case '\'': return closed(rest.find('\'', 1));
      case '"': return quoted_length(rest);
      case '`': return closed(rest.find('`', 1));
      case '$':
        if (rest.size() > 1 && rest[1] == '(') return nested_length(rest, 1, '(', ')');
        if (rest.size() > 1 && rest[1] == '{') return nested_length(rest, 1, '{', '}');
        return 1;
      default: return 1;
    }
  }

  static std::size_t closed(std::size_t at) { return at == std::string_view::npos ? 0 : at + 1; }

  static std::size_t quoted_length(std::string_view rest) {
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == '\\') {
        ++i;
      } else if (rest[i] == '"') {
        return i + 1;
      } else if (rest[i] == '`') {  // may contain quotes
        i = rest.find('`', i + 1);
        if (i == std::string_view::npos) return 0;
      } else if (rest[i] == '$' && i + 1 < rest.size() &&
                 (rest[i + 1] == '(' || rest[i + 1] == '{')) {
        const bool round = rest[i + 1] == '(';
        const std::size_t length =
            nested_length(rest.substr(i), 1, round ? '(' : '{', round ? ')' : '}');
        if (length == 0) return 0;
        i += length - 1;
      }
    }
    return 0;
  }

  static std::size_t nested_length(std::string_view rest, std::size_t from, char open, char close) {
    int depth = 0;
    for (std::size_t i = from; i < rest.size(); ++i) {
      if (rest[i] == '\\') {
        ++i;
      } else if (rest[i] == open) {
        ++depth;
      } else if (rest[i] == close && --depth == 0) {
        return i + 1;
      }
    }
    return 0;
  }

  struct Document {
    std::size_t token;
    std::string end;
    int line;
  };
  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<ShellToken> tokens_;
  std::vector<Document> documents_;
};

}  // namespace

Result<std::vector<ShellToken>> shell_tokens(std::string_view text, const std::string& file) {
  return ShellTokenizer(text, file).all();
}

}  // namespace tpsim
