#include "gui/views/stage_bands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/numbers.h"

namespace tpsim::gui {
namespace {

Stream stream_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kTransfer: return Stream::kPipeline;
    case SpanKind::kGradientReduction:
    case SpanKind::kTiedEmbedding:
    case SpanKind::kWeightGather: return Stream::kData;
    case SpanKind::kHostStep: return Stream::kHost;
    default: return Stream::kCompute;
  }
}

SpanKind color_of(const StreamSpan& span) {
  if (span.stream == Stream::kCompute) return span.task;
  return span.stream == Stream::kData ? SpanKind::kGradientReduction : SpanKind::kTransfer;
}

// Spans of lanes, which are put in order at the end.
class LaneWriter {
 public:
  LaneWriter(const StageBands& bands, Picoseconds end) : streams_(bands.streams) {
    lanes_.timeline.stages = static_cast<std::int64_t>(streams_.size());
    lanes_.timeline.end = end;
    lanes_.index.lanes.resize(2 * streams_.size());
  }

  void add(Stream stream, SpanKind kind, Picoseconds begin, Picoseconds end, bool exposed,
           const StreamSpan* kernel) {
    if (end <= begin) return;
    const auto found = std::find(streams_.begin(), streams_.end(), stream);
    const auto lane = static_cast<std::size_t>(found - streams_.begin());
    lanes_.index.lanes[2 * lane].push_back(static_cast<std::uint32_t>(lanes_.kernels.size()));
    lanes_.timeline.spans.push_back({static_cast<std::int64_t>(lane), kind, 0, 0, begin, end});
    lanes_.exposed.push_back(exposed);
    lanes_.kernels.push_back(kernel);
  }

  // A call is hidden first, and the stage waits for its end.
  void add_kernel(const StreamSpan& span, Picoseconds shift) {
    const SpanKind kind = color_of(span);
    const bool is_call = span.stream != Stream::kCompute;
    const Picoseconds visible =
        is_call ? std::clamp<Picoseconds>(span.exposed, 0, span.end - span.begin)
                : span.end - span.begin;
    add(span.stream, kind, span.begin + shift, span.end - visible + shift, false, &span);
    add(span.stream, kind, span.end - visible + shift, span.end + shift, true, &span);
  }

  StageLanes take() {
    const std::vector<TimelineSpan>& spans = lanes_.timeline.spans;
    for (std::vector<std::uint32_t>& lane : lanes_.index.lanes) {
      std::stable_sort(lane.begin(), lane.end(), [&](std::uint32_t a, std::uint32_t b) {
        return spans[a].begin < spans[b].begin;
      });
    }
    return std::move(lanes_);
  }

 private:
  const std::vector<Stream>& streams_;
  StageLanes lanes_;
};

// Adds the kernels of a task as two spans of each stream: the time that is hidden, and the rest.
void add_shares(LaneWriter& out, const std::vector<StreamSpan>& kernels, const TimelineSpan& task) {
  struct Shares {
    Picoseconds hidden = 0, exposed = 0;
    SpanKind kind{};
  };
  std::map<Stream, Shares> by_stream;
  for (const StreamSpan& span : kernels) {
    Shares& shares = by_stream[span.stream];
    const Picoseconds time = span.end - span.begin;
    const Picoseconds exposed = span.stream == Stream::kCompute ? time : span.exposed;
    shares.exposed += std::clamp<Picoseconds>(exposed, 0, time);
    shares.hidden += time - std::clamp<Picoseconds>(exposed, 0, time);
    shares.kind = color_of(span);
  }
  for (const auto& [stream, shares] : by_stream) {
    const Picoseconds middle = std::min(task.begin + shares.hidden, task.end);
    out.add(stream, shares.kind, task.begin, middle, false, nullptr);
    out.add(stream, shares.kind, middle, std::min(middle + shares.exposed, task.end), true,
            nullptr);
  }
}

}  // namespace

const StageMemory& fullest_stage(const std::vector<StageMemory>& memory) {
  const auto fuller = [](const StageMemory& a, const StageMemory& b) {
    return a.total() < b.total();
  };
  return *std::max_element(memory.begin(), memory.end(), fuller);
}

StageBands stage_bands(LayerPricer& pricer, const Plan& plan, const PlanCosts& costs,
                       const Timeline& timeline, const StageMemory& memory) {
  StageBands bands;
  bands.stage = memory.stage;
  std::set<Stream> streams = {Stream::kCompute};
  for (StreamSpan& span : stream_spans(pricer, plan, timeline, memory.stage)) {
    streams.insert(span.stream);
    bands.kernels[{span.chunk, span.task}].push_back(std::move(span));
  }
  for (const TimelineSpan& span : timeline.spans) {
    if (span.stage != memory.stage) continue;
    bands.work.push_back(span);
    if (!is_task(span.kind)) streams.insert(stream_of(span.kind));
    if (is_task(span.kind) && span.micro_batch == 0) {
      bands.begins[{span.chunk, span.kind}] = span.begin;
    }
  }
  bands.streams.assign(streams.begin(), streams.end());
  StageOverStep over_step = stage_over_step(pricer, plan, costs, timeline, memory);
  bands.samples = std::move(over_step.samples);
  bands.overheads = over_step.overheads;
  bands.peak_gib = over_step.peak.total() / kGiB;
  return bands;
}

StageLanes lanes_in(const StageBands& bands, const TimelineWindow& window) {
  LaneWriter out(bands, bands.work.empty() ? 0 : bands.work.back().end);
  const double scale = window.width / (window.end - window.begin);
  for (const TimelineSpan& span : bands.work) {
    if (to_seconds(span.end).value() <= window.begin) continue;
    if (to_seconds(span.begin).value() >= window.end) break;
    if (!is_task(span.kind)) {
      out.add(stream_of(span.kind), span.kind, span.begin, span.end,
              span.kind != SpanKind::kTransfer, nullptr);
      continue;
    }
    const auto kernels = bands.kernels.find({span.chunk, span.kind});
    if (kernels == bands.kernels.end()) continue;
    const double pixels = to_seconds(span.end - span.begin).value() * scale;
    if (pixels < static_cast<double>(kernels->second.size()) / 2) {
      add_shares(out, kernels->second, span);
      continue;
    }
    const Picoseconds shift = span.begin - bands.begins.at({span.chunk, span.kind});
    for (const StreamSpan& kernel : kernels->second) out.add_kernel(kernel, shift);
  }
  return out.take();
}

std::vector<MemoryColumn> memory_columns(const StageBands& bands, const TimelineWindow& window) {
  const auto total = [](const MemorySample& sample) {
    double bytes = 0;
    for (const double one : sample.bytes) bytes += one;
    return bytes;
  };
  const auto starts_later = [](double seconds, const MemorySample& sample) {
    return seconds < to_seconds(sample.time).value();
  };
  std::vector<MemoryColumn> columns(static_cast<std::size_t>(std::max(0.0, window.width)));
  const MemorySamples& samples = bands.samples;
  if (samples.empty()) return columns;
  const auto first = std::upper_bound(samples.begin(), samples.end(), window.begin, starts_later);
  auto next = static_cast<std::size_t>(first - samples.begin());
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const double right = window.seconds_at(static_cast<double>(x + 1));
    // A sample holds until the next one.
    std::size_t highest = next == 0 ? 0 : next - 1;
    for (; next < samples.size() && !starts_later(right, samples[next]); ++next) {
      if (total(samples[next]) > total(samples[highest])) highest = next;
    }
    const MemorySample& sample = samples[highest];
    for (int part = 0; part < kMemoryPartCount; ++part) {
      const auto i = static_cast<std::size_t>(part);
      const double tensors = i < sample.bytes.size() ? sample.bytes[i] : 0;
      columns[x][i] = tensors + part_of(bands.overheads, part).value();
    }
  }
  return columns;
}

std::string kernel_text(const StreamSpan& span) {
  const double seconds = to_seconds(span.end - span.begin).value();
  std::string text = fmt::format("{}, {}\n{} on the {} stream", span.label, span.what,
                                 time_text(Seconds(seconds)), name_of(span.stream));
  if (span.flops > 0) text += fmt::format(", {:.0f} TFLOP/s", span.flops / seconds / 1e12);
  if (span.ranks == 0) return text + fmt::format(", {:.0f} GB/s", span.bytes / seconds / 1e9);
  text += fmt::format("\n{:.1f} MB between {} ranks, ", span.bytes / 1e6, span.ranks);
  return text + (span.exposed > 0
                     ? fmt::format("the stage waits {}", time_text(to_seconds(span.exposed)))
                     : std::string("hidden"));
}

}  // namespace tpsim::gui
