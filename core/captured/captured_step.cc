#include "core/captured/captured_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "core/base/files.h"
#include "core/json/json_document.h"

namespace tpsim {
namespace {

constexpr std::string_view kFormat = "tpsim captured step";

struct ElementSize {
  std::string_view dtype;
  std::int64_t bytes;
};
constexpr std::array kSizes = {
    ElementSize{"float64", 8},   ElementSize{"float32", 4},       ElementSize{"float16", 2},
    ElementSize{"bfloat16", 2},  ElementSize{"int64", 8},         ElementSize{"int32", 4},
    ElementSize{"int16", 2},     ElementSize{"int8", 1},          ElementSize{"uint8", 1},
    ElementSize{"bool", 1},      ElementSize{"float8_e4m3fn", 1}, ElementSize{"float8_e5m2", 1},
    ElementSize{"complex64", 8}, ElementSize{"uint64", 8},        ElementSize{"uint32", 4},
    ElementSize{"uint16", 2}};

struct NamedKind {
  std::string_view name;  // of c10d's or functional collectives
  CollectiveKind kind;
};
constexpr std::array kCollectives = {NamedKind{"allreduce", CollectiveKind::kAllReduce},
                                     NamedKind{"all_reduce", CollectiveKind::kAllReduce},
                                     NamedKind{"allgather", CollectiveKind::kAllGather},
                                     NamedKind{"all_gather", CollectiveKind::kAllGather},
                                     NamedKind{"reduce_scatter", CollectiveKind::kReduceScatter},
                                     NamedKind{"alltoall", CollectiveKind::kAllToAll},
                                     NamedKind{"all_to_all", CollectiveKind::kAllToAll},
                                     NamedKind{"broadcast", CollectiveKind::kBroadcast},
                                     NamedKind{"send", CollectiveKind::kSend},
                                     NamedKind{"recv", CollectiveKind::kReceive},
                                     NamedKind{"reduce", CollectiveKind::kAllReduce},
                                     NamedKind{"barrier", CollectiveKind::kAllReduce}};

// Reads the document. After the first error nothing more is read.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Result<CapturedStep> read(const JsonValue& root) {
    const JsonValue* format = root.find("format");
    const std::string* name = format == nullptr ? nullptr : format->as<std::string>();
    if (name == nullptr || *name != kFormat) {
      return bad_input("not a captured step: no \"format\": \"tpsim captured step\"", file_,
                       "python -m tpsim_capture train.py writes one");
    }
    step_.world = integer(member(root, "world"), 1, 1 << 24);
    step_.rank = integer(member(root, "rank"), 0, step_.world - 1);
    texts(member(root, "software"), step_.software);
    texts(member(root, "assumed"), step_.assumed);
    for (const JsonValue& one : list(member(root, "modules"))) step_.modules.push_back(text(one));
    for (const JsonValue& one : list(member(root, "groups"))) read_group(one);
    for (const JsonValue& one : list(member(root, "kernels"))) read_kernel(one);
    for (const JsonValue& one : list(member(root, "storages"))) read_storage(one);
    for (const JsonValue& one : list(member(root, "live_at_start"))) {
      step_.live_at_start.push_back(index(one, step_.storages.size()));
    }
    for (const JsonValue& one : list(member(root, "events"))) read_event(one);
    if (error_) return *error_;
    return std::move(step_);
  }

 private:
  void fail(const JsonValue& at, std::string message) {
    if (!error_) error_ = bad_input(std::move(message), fmt::format("{}:{}", file_, at.line()));
  }
  const JsonValue& member(const JsonValue& object, std::string_view key) {
    static const JsonValue kNothing;
    const JsonValue* found = object.find(key);
    if (found == nullptr) fail(object, fmt::format("the key '{}' is missing", key));
    return found == nullptr ? kNothing : *found;
  }
  const JsonValue::Array& list(const JsonValue& value) {
    static const JsonValue::Array kNone;
    const auto* array = value.as<JsonValue::Array>();
    if (array == nullptr) fail(value, fmt::format("a list is expected, not {}", kind_of(value)));
    return array == nullptr || error_ ? kNone : *array;
  }
  std::string text(const JsonValue& value) {
    const auto* found = value.as<std::string>();
    if (found == nullptr) fail(value, fmt::format("a text is expected, not {}", kind_of(value)));
    return found == nullptr ? "" : *found;
  }
  std::int64_t integer(const JsonValue& value, std::int64_t least, std::int64_t most) {
    const auto* found = value.as<std::int64_t>();
    if (found == nullptr || *found < least || *found > most) {
      fail(value, fmt::format("a whole number from {} to {} is expected", least, most));
      return least;
    }
    return *found;
  }
  std::uint32_t index(const JsonValue& value, std::size_t size) {
    if (size == 0) fail(value, "names a row of a list that is empty");
    return static_cast<std::uint32_t>(
        integer(value, 0, std::max<std::int64_t>(0, static_cast<std::int64_t>(size) - 1)));
  }
  void texts(const JsonValue& value, std::vector<std::pair<std::string, std::string>>& into) {
    const auto* object = value.as<JsonValue::Object>();
    if (object == nullptr) return fail(value, "an object is expected");
    for (const JsonMember& one : *object) into.emplace_back(one.key, text(one.value));
  }

  void read_group(const JsonValue& value) {
    std::vector<std::int64_t>& ranks = step_.groups.emplace_back();
    for (const JsonValue& rank : list(value)) ranks.push_back(integer(rank, 0, step_.world - 1));
  }

  CapturedTensor tensor(const JsonValue& value) {
    CapturedTensor made;
    const JsonValue::Array& parts = list(value);
    if (parts.size() < 2) {
      fail(value, "a tensor is [shape, dtype] or [shape, dtype, strides]");
      return made;
    }
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    for (const JsonValue& one : list(parts[0])) made.shape.push_back(integer(one, 0, kMost));
    made.dtype = text(parts[1]);
    if (parts.size() > 2) {
      for (const JsonValue& one : list(parts[2])) made.strides.push_back(integer(one, 0, kMost));
      if (made.strides.size() != made.shape.size()) fail(value, "one stride per extent");
    }
    const auto size = std::find_if(kSizes.begin(), kSizes.end(), [&](const ElementSize& known) {
      return known.dtype == made.dtype;
    });
    if (size == kSizes.end()) {
      fail(value, fmt::format("unknown dtype '{}'", made.dtype));
    } else {
      made.element_bytes = size->bytes;
    }
    return made;
  }

  void read_kernel(const JsonValue& value) {
    CapturedKernel& kernel = step_.kernels.emplace_back();
    kernel.op = text(member(value, "op"));
    for (const JsonValue& one : list(member(value, "in"))) kernel.in.push_back(tensor(one));
    for (const JsonValue& one : list(member(value, "out"))) kernel.out.push_back(tensor(one));
    if (const JsonValue* scalars = value.find("scalars")) {
      for (const JsonValue& one : list(*scalars)) {
        const auto* whole = one.as<std::int64_t>();
        const auto* number = one.as<double>();
        const auto* flag = one.as<bool>();
        kernel.scalars.push_back(whole != nullptr    ? static_cast<double>(*whole)
                                 : number != nullptr ? *number
                                                     : (flag != nullptr && *flag ? 1.0 : 0.0));
      }
    }
    if (const JsonValue* bytes = value.find("bytes")) {
      kernel.bytes = integer(*bytes, 0, std::int64_t{1} << 50);
    }
    if (const JsonValue* to = value.find("to")) {
      kernel.copies_to_device = text(*to) == "cuda";
      kernel.copies_to_host = !kernel.copies_to_device;
    }
  }

  void read_storage(const JsonValue& value) {
    CapturedStorage& storage = step_.storages.emplace_back();
    const JsonValue::Array& parts = list(value);
    if (parts.size() != 3) return fail(value, "a storage is [bytes, contents, module]");
    storage.bytes = integer(parts[0], 0, std::int64_t{1} << 50);
    const std::string kind = text(parts[1]);
    if (kind == "parameter") storage.category = MemoryCategory::kWeights;
    if (kind == "gradient") storage.category = MemoryCategory::kGradients;
    if (kind == "optimizer") storage.category = MemoryCategory::kOptimizer;
    storage.module = index(parts[2], step_.modules.size());
  }

  void read_collective(const JsonValue& value, const JsonValue::Array& parts,
                       CapturedEvent& event) {
    const std::string name = text(parts[1]);
    const auto kind = std::find_if(kCollectives.begin(), kCollectives.end(),
                                   [&](const auto& one) { return name.starts_with(one.name); });
    if (kind == kCollectives.end()) {
      return fail(value, fmt::format("unknown collective '{}'", name));
    }
    event.index = static_cast<std::uint32_t>(step_.collectives.size());
    step_.collectives.push_back({kind->kind, index(parts[5], step_.groups.size()),
                                 integer(parts[6], 0, std::int64_t{1} << 50)});
  }

  void read_event(const JsonValue& value) {
    using Kind = CapturedEvent::Kind;
    constexpr std::int64_t kMostStreams = std::int64_t{1} << 40;
    const JsonValue::Array& parts = list(value);
    const std::string word = parts.empty() ? "" : text(parts[0]);
    CapturedEvent event;
    const auto has = [&](std::size_t count) {
      if (parts.size() != count) fail(value, fmt::format("'{}' has {} values", word, count - 1));
      return parts.size() == count;
    };
    if (word == "allocate" || word == "free") {
      if (!has(2)) return;
      event.kind = word == "free" ? Kind::kFree : Kind::kAllocate;
      event.index = index(parts[1], step_.storages.size());
    } else if (word == "mark" || word == "wait") {
      if (!has(3)) return;
      event.kind = word == "mark" ? Kind::kMark : Kind::kWait;
      event.stream = integer(parts[1], 0, kMostStreams);
      event.index = static_cast<std::uint32_t>(integer(parts[2], 0, 1 << 30));
    } else if (word == "call") {
      if (!has(2)) return;
      event.kind = Kind::kCall;
      event.module = index(parts[1], step_.modules.size());
    } else if (word == "host_wait") {
      if (!has(2)) return;
      event.kind = Kind::kHostWait;
      event.index = parts[1].is_null() ? CapturedEvent::kEverything
                                       : static_cast<std::uint32_t>(integer(parts[1], 0, 1 << 30));
    } else if (word == "kernel" || word == "collective") {
      const bool is_kernel = word == "kernel";
      if (!has(is_kernel ? 5 : 8)) return;
      event.kind = is_kernel ? Kind::kKernel : Kind::kCollective;
      if (is_kernel) event.index = index(parts[1], step_.kernels.size());
      const std::string phase = text(parts[2]);
      const auto& names = kEnumNames<CapturedPhase>;
      const auto* const found = std::find(names.begin(), names.end(), phase);
      if (found == names.end()) return fail(value, fmt::format("unknown phase '{}'", phase));
      event.phase = static_cast<CapturedPhase>(found - names.begin());
      event.stream = integer(parts[3], 0, kMostStreams);
      event.module = index(parts[4], step_.modules.size());
      if (!is_kernel) read_collective(value, parts, event);
    } else {
      return fail(value, fmt::format("unknown event '{}'", word));
    }
    step_.events.push_back(event);
  }

  const std::string& file_;
  CapturedStep step_;
  std::optional<Error> error_;
};

}  // namespace

std::int64_t CapturedTensor::elements() const {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (strides.empty() || strides[i] != 0) count *= shape[i];
  }
  return count;
}

Result<CapturedStep> parse_captured_step(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return Reader(file).read(root);
}

Result<CapturedStep> read_captured_step(const std::filesystem::path& path) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  return Reader(path.string()).read(root);
}

bool is_captured_step(const std::filesystem::path& path) {
  std::string start(2 * kFormat.size(), '\0');
  std::ifstream(path).read(start.data(), static_cast<std::streamsize>(start.size()));
  return start.find(kFormat) != std::string::npos;
}

}  // namespace tpsim
