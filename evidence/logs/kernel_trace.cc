#include "evidence/logs/kernel_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/json/json_document.h"

namespace tpsim {
namespace {

constexpr std::string_view kStepMark = "ProfilerStep#";

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

double number(const JsonValue* value) {
  if (value == nullptr) return 0;
  if (const auto* whole = value->as<std::int64_t>()) return static_cast<double>(*whole);
  const auto* real = value->as<double>();
  return real == nullptr ? 0 : *real;
}

std::string text_at(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  const auto* text = value == nullptr ? nullptr : value->as<std::string>();
  return text == nullptr ? "" : *text;
}

// Returns the JSON object at `at`, with braces; empty if it is not closed.
std::string_view object_at(std::string_view text, std::size_t at) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return text.substr(at, i + 1 - at);
    }
  }
  return {};
}

// Returns "AllReduce" for
// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)".
std::string collective_name(std::string_view kernel) {
  const std::size_t bar = kernel.find('_');
  if (bar == std::string_view::npos) return std::string(kernel);
  const std::string_view rest = kernel.substr(bar + 1);
  return std::string(rest.substr(0, rest.find_first_of("_(<")));
}

void add_event(const JsonValue& event, TracedRank& trace) {
  if (text_at(event, "ph") != "X") return;
  const std::string category = text_at(event, "cat"), name = text_at(event, "name");
  const double begin = number(event.find("ts"));
  const TracedSpan span{begin, begin + std::max(0.0, number(event.find("dur")))};
  if (name.starts_with(kStepMark)) {
    const bool on_device = category == "gpu_user_annotation";
    (on_device ? trace.device_steps : trace.host_steps).push_back(span);
    return;
  }
  const bool copies = category == "gpu_memcpy" || category == "gpu_memset";
  if (!copies && category != "kernel") return;
  trace.kernels.push_back({span, copies ? KernelClass::kCopies : class_of_kernel(name), name});
  if (const JsonValue* args = event.find("args");
      args != nullptr && args->find("device") != nullptr) {
    trace.devices.insert(static_cast<std::int64_t>(number(args->find("device"))));
  }
}

// Parses one event at a time, because a trace of a few steps is too large for one JSON document in
// memory.
Result<TracedRank> events_of(std::string_view text, const std::string& file) {
  TracedRank trace;
  const std::size_t key = text.find("\"traceEvents\"");
  std::size_t at = text.find('[', key == std::string_view::npos ? 0 : key);
  while (at != std::string_view::npos && at < text.size()) {
    at = text.find_first_of("{]", at);
    if (at == std::string_view::npos || text[at] == ']') break;
    const std::string_view event = object_at(text, at);
    if (event.empty()) {
      return bad_input(
          "ends in the middle of an event", file,
          "the profiler was stopped before it had written all events; record the trace again");
    }
    at += event.size();
    const bool matters =
        holds(event, "\"kernel\"") || holds(event, "\"gpu_mem") || holds(event, kStepMark);
    if (!matters) continue;
    TPSIM_TRY(const JsonValue parsed, parse_json(event, file));
    add_event(parsed, trace);
  }
  return trace;
}

bool begins_before(const TracedSpan& a, const TracedSpan& b) { return a.begin < b.begin; }

// Returns the length of the union of the spans.
double covered(std::vector<TracedSpan> spans) {
  std::sort(spans.begin(), spans.end(), begins_before);
  double sum = 0, reached = -1e300;
  for (const TracedSpan& span : spans) {
    sum += std::max(0.0, span.end - std::max(span.begin, reached));
    reached = std::max(reached, span.end);
  }
  return sum;
}

// Returns the marked steps as adjacent intervals: a step ends when the next one begins. Device
// marks leave gaps between steps and the end of the last step is unknown, so the last device step
// is dropped.
std::vector<TracedSpan> steps_of(const TracedRank& trace) {
  std::vector<TracedSpan> steps = trace.host_steps.empty() ? trace.device_steps : trace.host_steps;
  std::sort(steps.begin(), steps.end(), begins_before);
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) steps[i].end = steps[i + 1].begin;
  if (trace.host_steps.empty() && steps.size() > 1) steps.pop_back();
  return steps;
}

void add_collectives(const std::vector<TracedKernel>& kernels, double count, KernelTimes& times) {
  std::map<std::string, TracedCollective> by_name;
  for (const TracedKernel& kernel : kernels) {
    if (kernel.kind != KernelClass::kCollectives) continue;
    const std::string name = collective_name(kernel.name);
    TracedCollective& one = by_name.try_emplace(name, TracedCollective{name, 0, {}}).first->second;
    one.calls += 1 / count;
    one.time += Seconds((kernel.span.end - kernel.span.begin) * 1e-6 / count);
  }
  for (auto& [name, one] : by_name) times.collectives.push_back(std::move(one));
  std::stable_sort(times.collectives.begin(), times.collectives.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
}

KernelTimes summed(const TracedRank& trace, const std::vector<TracedSpan>& steps) {
  const TracedSpan all{steps.front().begin, steps.back().end};
  const auto count = static_cast<double>(steps.size());
  const auto of_step = [&](double us) { return Seconds(us * 1e-6 / count); };
  KernelTimes times;
  for (const TracedSpan& step : steps) times.steps.emplace_back((step.end - step.begin) * 1e-6);
  times.step = of_step(all.end - all.begin);
  std::vector<TracedKernel> inside;
  std::vector<TracedSpan> any, work;
  for (const TracedKernel& kernel : trace.kernels) {
    // Kernels run later than their launch. A kernel of the last step that starts after its mark is
    // not counted. Kernels that were launched before the first mark and run after it are counted
    // instead.
    if (kernel.span.begin < all.begin || kernel.span.begin >= all.end) continue;
    inside.push_back(kernel);
    const TracedSpan span{kernel.span.begin, std::min(kernel.span.end, all.end)};
    times.by_class[static_cast<std::size_t>(kernel.kind)] += of_step(span.end - span.begin);
    any.push_back(span);
    if (kernel.kind != KernelClass::kCollectives) work.push_back(span);
  }
  const double busy = covered(any);
  times.idle = of_step(all.end - all.begin - busy);
  times.exposed = of_step(busy - covered(work));
  add_collectives(inside, count, times);
  return times;
}

// Reads {"backend": "nccl", "rank": 0, "world_size": 8, ...}, before or after the events.
Status add_job(std::string_view text, const std::string& file, KernelTimes& times) {
  const std::size_t at = text.find("\"distributedInfo\"");
  const std::size_t brace = at == std::string_view::npos ? at : text.find('{', at);
  if (brace == std::string_view::npos) return Ok{};
  TPSIM_TRY(const JsonValue job, parse_json(object_at(text, brace), file));
  times.gpus = static_cast<std::int64_t>(number(job.find("world_size")));
  times.rank = static_cast<std::int64_t>(number(job.find("rank")));
  return Ok{};
}

}  // namespace

Result<KernelTimes> kernel_times(const TracedRank& rank, const std::string& file,
                                 const char* how_to_mark) {
  const std::vector<TracedSpan> steps = steps_of(rank);
  if (steps.empty()) {
    return bad_input("is a trace without step marks", file, how_to_mark);
  }
  if (!(steps.back().end > steps.front().begin)) {
    return bad_input("is a trace with steps of zero length", file);
  }
  return summed(rank, steps);
}

KernelClass class_of_kernel(std::string_view name) {
  const std::string lower = in_lower_case(std::string(name));
  const auto is_any = [&](auto... parts) { return (holds(lower, parts) || ...); };
  if (is_any("nccl", "deep_ep", "nvshmem")) return KernelClass::kCollectives;
  if (is_any("flash", "fmha", "attention", "sdpa")) return KernelClass::kAttention;
  if (is_any("gemm", "xmma", "cutlass", "nvjet", "cublas", "matmul", "cijk_")) {
    return KernelClass::kProducts;
  }
  return KernelClass::kOthers;
}

bool is_kernel_trace(std::string_view text) {
  constexpr std::size_t kHead = 1 << 16;
  const std::string_view head = text.substr(0, kHead);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const bool is_json =
      first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
  return is_json && (holds(head, "\"traceEvents\"") || holds(head, "\"deviceProperties\"") ||
                     holds(head, "\"ph\""));
}

Result<KernelTimes> read_kernel_trace(std::string_view text, const std::string& file) {
  TPSIM_TRY(const TracedRank trace, events_of(text, file));
  const auto bad = [&](std::string message, std::string hint) {
    return bad_input(std::move(message), file, std::move(hint));
  };
  if (trace.kernels.empty()) {
    return bad("is a trace without GPU kernels",
               "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
  }
  if (trace.devices.size() > 1) {
    return bad(fmt::format("is a trace of {} devices", trace.devices.size()),
               "give the trace of one rank");
  }
  TPSIM_TRY(KernelTimes times,
            kernel_times(trace, file, "call prof.step() after every step of the training loop"));
  TPSIM_TRY_STATUS(add_job(text, file, times));
  return times;
}

}  // namespace tpsim
