#include "app/reports/trace_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/json/json_document.h"

namespace tpsim::app {
namespace {

// Tracks of one pipeline stage. The first track is compute; each further track has transfers that
// do not overlap each other.
struct StageTracks {
  std::vector<Picoseconds> transfer_ends;
};

// Returns the first transfer track that is free when the span begins. Adds a track if all are busy.
std::size_t transfer_track(StageTracks& tracks, const TimelineSpan& span) {
  std::vector<Picoseconds>& ends = tracks.transfer_ends;
  const auto is_free = [&](Picoseconds end) { return end <= span.begin; };
  auto track = std::find_if(ends.begin(), ends.end(), is_free);
  if (track == ends.end()) track = ends.insert(ends.end(), 0);
  *track = span.end;
  return static_cast<std::size_t>(track - ends.begin());
}

// Viewers such as Perfetto take 0 for an unknown process or thread, so ids begin at 1.
constexpr std::int64_t kProcess = 1, kFirstTrack = 1;

double microseconds(Picoseconds time) { return static_cast<double>(time) / 1e6; }

bool has_micro_batch(SpanKind kind) { return is_task(kind) || kind == SpanKind::kTransfer; }

JsonValue event_json(const TimelineSpan& span, std::int64_t track) {
  JsonValue args = json_object({{"stage", span.stage}});
  std::string name(name_of(span.kind));
  if (has_micro_batch(span.kind)) {
    args.set("micro_batch", span.micro_batch).set("chunk", span.chunk);
    name += fmt::format(" {}", span.micro_batch);
  }
  return json_object({{"name", name},
                      {"cat", name_of(span.kind)},
                      {"ph", "X"},
                      {"ts", microseconds(span.begin)},
                      {"dur", microseconds(span.end - span.begin)},
                      {"pid", kProcess},
                      {"tid", track},
                      {"args", std::move(args)}});
}

JsonValue metadata_json(const char* what, std::int64_t process, std::int64_t track,
                        JsonValue args) {
  return json_object(
      {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", std::move(args)}});
}

// The memory of a stage by category: viewers draw the categories as a stack.
JsonValue memory_json(const StageMemory& overheads, const MemorySample& sample,
                      const std::string& name) {
  JsonValue gib = json_object();
  for (std::size_t i = 0; i < sample.bytes.size(); ++i) {
    const double bytes = sample.bytes[i] + overheads.by_category[i].value();
    gib.set(std::string(name_of(static_cast<MemoryCategory>(i))), bytes / kGiB);
  }
  gib.set("context", overheads.context.value() / kGiB);
  gib.set("fragmentation", overheads.fragmentation.value() / kGiB);
  return json_object({{"name", name},
                      {"ph", "C"},
                      {"ts", microseconds(sample.time)},
                      {"pid", kProcess},
                      {"args", std::move(gib)}});
}

// Text of a JSON array of events, one event per line. A long trace is not stored as a tree of
// values.
class EventList {
 public:
  void add(const JsonValue& event) {
    if (!text_.empty()) text_ += ",\n";
    bool indents = false;
    // Removes line breaks between tokens; those inside of strings are escaped.
    for (const char c : to_text(event)) {
      indents = c == '\n' || (indents && c == ' ');
      if (!indents) text_ += c;
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Assigns track ids: for each stage the compute track, then its transfer tracks.
class TrackIds {
 public:
  explicit TrackIds(const Timeline& timeline) : stages_(static_cast<std::size_t>(timeline.stages)) {
    for (const TimelineSpan& span : timeline.spans) {
      StageTracks& tracks = stages_.at(static_cast<std::size_t>(span.stage));
      lanes_.push_back(span.kind == SpanKind::kTransfer ? 1 + transfer_track(tracks, span) : 0);
    }
    std::int64_t next = kFirstTrack;
    for (const StageTracks& tracks : stages_) {
      first_.push_back(next);
      next += 1 + static_cast<std::int64_t>(tracks.transfer_ends.size());
    }
  }

  // Returns the track id of the span with this index.
  std::int64_t of_span(const Timeline& timeline, std::size_t index) const {
    return first_[static_cast<std::size_t>(timeline.spans[index].stage)] +
           static_cast<std::int64_t>(lanes_[index]);
  }

  void add_names(EventList& events) const {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const std::size_t lanes = 1 + stages_[stage].transfer_ends.size();
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::int64_t id = first_[stage] + static_cast<std::int64_t>(lane);
        const std::string name = fmt::format("stage {}{}", stage, lane == 0 ? "" : " transfers");
        events.add(metadata_json("thread_name", kProcess, id, json_object({{"name", name}})));
        events.add(
            metadata_json("thread_sort_index", kProcess, id, json_object({{"sort_index", id}})));
      }
    }
  }

 private:
  std::vector<StageTracks> stages_;
  std::vector<std::size_t> lanes_;   // track within the stage, by span; 0: compute
  std::vector<std::int64_t> first_;  // id of the compute track, by stage
};

// Streams of a stage are a process of the viewer.
constexpr std::int64_t kFirstStage = kProcess + 1;

std::int64_t track_of(const StreamSpan& span) {
  return kFirstTrack + static_cast<std::int64_t>(span.stream);
}

JsonValue stream_json(const StreamSpan& span) {
  const double seconds = static_cast<double>(span.end - span.begin) / 1e12;
  JsonValue args = json_object({{"what", span.what}, {"chunk", span.chunk}});
  if (span.flops > 0) args.set("tflops_per_s", span.flops / seconds / 1e12);
  if (span.ranks == 0) {
    args.set("gb_per_s", span.bytes / seconds / 1e9);
  } else {
    args.set("ranks", span.ranks).set("bytes", span.bytes);
    args.set("exposed_us", microseconds(span.exposed));
  }
  return json_object({{"name", span.label},
                      {"cat", name_of(span.stream)},
                      {"ph", "X"},
                      {"ts", microseconds(span.begin)},
                      {"dur", microseconds(span.end - span.begin)},
                      {"pid", kFirstStage + span.stage},
                      {"tid", track_of(span)},
                      {"args", std::move(args)}});
}

// An end of an arrow between the compute stream and a call.
JsonValue arrow_json(const char* phase, std::int64_t id, const StreamSpan& span, Picoseconds time,
                     std::int64_t track) {
  JsonValue arrow = json_object({{"name", span.label},
                                 {"cat", "call"},
                                 {"ph", phase},
                                 {"id", id},
                                 {"ts", microseconds(time)},
                                 {"pid", kFirstStage + span.stage},
                                 {"tid", track}});
  if (*phase == 'f') arrow.set("bp", "e");
  return arrow;
}

// The kernels and calls of each stage, with arrows from start to call and from call to wait.
void add_streams(EventList& events, const std::vector<StreamSpan>& spans) {
  const std::int64_t compute = kFirstTrack + static_cast<std::int64_t>(Stream::kCompute);
  std::set<std::pair<std::int64_t, Stream>> named;
  std::int64_t arrow = 0;
  for (const StreamSpan& span : spans) {
    const std::int64_t process = kFirstStage + span.stage;
    const auto name = [&](const char* what, std::int64_t track, std::string text) {
      events.add(metadata_json(what, process, track, json_object({{"name", std::move(text)}})));
    };
    const auto first = named.lower_bound({span.stage, Stream()});
    if (first == named.end() || first->first != span.stage) {
      name("process_name", kFirstTrack, fmt::format("stage {}, first micro-batch", span.stage));
    }
    if (named.insert({span.stage, span.stream}).second) {
      name("thread_name", track_of(span), std::string(name_of(span.stream)));
    }
    events.add(stream_json(span));
    if (span.issued >= 0) {
      events.add(arrow_json("s", ++arrow, span, span.issued, compute));
      events.add(arrow_json("f", arrow, span, span.begin, track_of(span)));
    }
    if (span.needed >= 0) {
      events.add(arrow_json("s", ++arrow, span, span.end, track_of(span)));
      events.add(arrow_json("f", arrow, span, std::max(span.needed, span.end), compute));
    }
  }
}

JsonValue captured_json(const CapturedStep& step, const CapturedSpan& span, std::int64_t track) {
  const CapturedEvent& event = step.events[span.event];
  const std::string_view phase = kEnumNames<CapturedPhase>[static_cast<std::size_t>(event.phase)];
  JsonValue args = json_object({{"module", step.modules[event.module]}});
  std::string name;
  if (event.kind == CapturedEvent::Kind::kCollective) {
    const CapturedCollective& call = step.collectives[event.index];
    name = name_of(call.kind);
    args.set("ranks", step.groups[call.group].size()).set("bytes", call.bytes);
  } else {
    name = step.kernels[event.index].op;
  }
  return json_object({{"name", std::move(name)},
                      {"cat", phase},
                      {"ph", "X"},
                      {"ts", microseconds(to_picoseconds(span.begin))},
                      {"dur", microseconds(to_picoseconds(span.end - span.begin))},
                      {"pid", kProcess},
                      {"tid", track},
                      {"args", std::move(args)}});
}

std::string document(const EventList& events) {
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + events.text() + "\n]}\n";
}

}  // namespace

std::string captured_trace_json(const CapturedStep& step, const CapturedPrediction& predicted) {
  EventList events;
  std::map<std::int64_t, std::int64_t> tracks;  // by stream
  for (const CapturedSpan& span : predicted.spans) {
    const std::int64_t stream = step.events[span.event].stream;
    const auto added = tracks.try_emplace(stream, kFirstTrack + std::ssize(tracks));
    const std::int64_t track = added.first->second;
    if (added.second) {
      const std::string name = stream == 0 ? "compute" : fmt::format("stream {}", stream);
      events.add(metadata_json("thread_name", kProcess, track, json_object({{"name", name}})));
    }
    events.add(captured_json(step, span, track));
    if (stream != 0) continue;
    events.add(
        memory_json(predicted.overheads, {to_picoseconds(span.begin), span.bytes}, "memory, GiB"));
  }
  return document(events);
}

std::string trace_json(const StepMemory& step, const std::vector<StreamSpan>& streams,
                       std::string_view title) {
  const Timeline& timeline = step.timeline;
  EventList events;
  events.add(metadata_json("process_name", kProcess, kFirstTrack, json_object({{"name", title}})));
  const TrackIds ids(timeline);
  ids.add_names(events);
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    events.add(event_json(timeline.spans[i], ids.of_span(timeline, i)));
  }
  for (std::size_t stage = 0; stage < step.samples.size(); ++stage) {
    for (const MemorySample& sample : step.samples[stage]) {
      events.add(memory_json(step.overheads[stage], sample,
                             fmt::format("memory of stage {}, GiB", step.overheads[stage].stage)));
    }
  }
  add_streams(events, streams);
  return document(events);
}

}  // namespace tpsim::app
