#include "lowering/trace/sized_traces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tpsim {
namespace {

bool is_same(const Label& a, const Label& b) { return a.part == b.part && a.text == b.text; }
bool is_same(const OpRecord& a, const OpRecord& b) {
  return a.key.kind == b.key.kind && a.key.dtype == b.key.dtype && a.key.variant == b.key.variant &&
         a.input == b.input && is_same(a.label, b.label);
}
bool is_same(const CollectiveRecord& a, const CollectiveRecord& b) {
  return a.kind == b.kind && a.group == b.group && a.ranks == b.ranks && is_same(a.label, b.label);
}
bool is_same(const AllocationRecord& a, const AllocationRecord& b) {
  return a.category == b.category && a.role == b.role && a.label == b.label;
}
bool is_same(const ProgramEvent& a, const ProgramEvent& b) {
  return a.kind == b.kind && a.index == b.index;
}
bool is_same(const LayerTrace::Span& a, const LayerTrace::Span& b) {
  return a.begin == b.begin && a.end == b.end;
}
template <class Records>
bool are_same(const Records& a, const Records& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return is_same(x, y); });
}

// Whether two traces differ in sizes alone.
bool have_same_structure(const LayerTrace& a, const LayerTrace& b) {
  return a.recompute_end == b.recompute_end && are_same(a.spans, b.spans) &&
         are_same(a.program.events, b.program.events) && are_same(a.program.ops, b.program.ops) &&
         are_same(a.program.collectives, b.program.collectives) &&
         are_same(a.program.allocations, b.program.allocations);
}

__extension__ using Wide = __int128;

// A sum of samples: values of a trace are the sum of `factors` x values of the samples, divided by
// `divisor`.
struct Mix {
  std::array<std::int64_t, 3> factors{};
  std::int64_t divisor = 0;  // 0: the samples do not determine the trace
  std::size_t samples = 0;
};

// Returns the mix of up to three samples that has the micro-batch and the slots.
template <class Samples>
Mix mix_of(const Samples& samples, std::int64_t micro_batch, std::int64_t slots) {
  if (samples.size() < 2 || micro_batch < samples.front().micro_batch) return {};
  // Coordinates relative to the first sample: micro-batch, slots.
  struct Point {
    std::int64_t x, y;
  };
  const auto from_first = [&](std::int64_t x, std::int64_t y) {
    return Point{x - samples[0].micro_batch, y - samples[0].slots};
  };
  const auto cross = [](Point a, Point b) { return a.x * b.y - a.y * b.x; };
  const Point wanted = from_first(micro_batch, slots);
  const Point second = from_first(samples[1].micro_batch, samples[1].slots);
  if (cross(second, wanted) == 0) {
    return {{second.x - wanted.x, wanted.x}, second.x, 2};
  }
  if (samples.size() < 3) return {};
  const Point third = from_first(samples[2].micro_batch, samples[2].slots);
  const std::int64_t area = cross(second, third);
  const std::int64_t of_second = cross(wanted, third), of_third = cross(second, wanted);
  return {{area - of_second - of_third, of_second, of_third}, area, 3};
}

class Mixer {
 public:
  explicit Mixer(const Mix& mix) : mix_(mix) {}

  std::int64_t operator()(std::int64_t a, std::int64_t b, std::int64_t c) {
    if (a == b && a == c) return a;  // the factors add up to the divisor
    const Wide sum =
        Wide{mix_.factors[0]} * a + Wide{mix_.factors[1]} * b + Wide{mix_.factors[2]} * c;
    if (mix_.divisor == 1) return static_cast<std::int64_t>(sum);
    is_exact_ = is_exact_ && sum % mix_.divisor == 0;
    return static_cast<std::int64_t>(sum / mix_.divisor);
  }
  // FLOPs and bytes are whole numbers, which are exact below 2^53.
  double operator()(double a, double b, double c) {
    const std::int64_t value = (*this)(whole(a), whole(b), whole(c));
    return static_cast<double>(whole(static_cast<double>(value)));
  }
  bool is_exact() const { return is_exact_; }

 private:
  std::int64_t whole(double value) {
    constexpr double kMostExact = 9e15;
    is_exact_ = is_exact_ && std::floor(value) == value && std::abs(value) < kMostExact;
    return is_exact_ ? static_cast<std::int64_t>(value) : 0;
  }

  const Mix& mix_;
  bool is_exact_ = true;
};

// Computes the sizes of `sized`, which has the ops of the samples. Returns false if a size is a
// fraction.
bool mix(const Mix& by, const Program& a, const Program& b, const Program& c, Program& sized) {
  Mixer mixed(by);
  for (std::size_t i = 0; i < sized.ops.size(); ++i) {
    const OpRecord &x = a.ops[i], &y = b.ops[i], &z = c.ops[i];
    OpRecord& op = sized.ops[i];
    for (std::size_t d = 0; d < op.key.dims.size(); ++d) {
      op.key.dims[d] = mixed(x.key.dims[d], y.key.dims[d], z.key.dims[d]);
    }
    op.flops = mixed(x.flops, y.flops, z.flops);
    op.bytes = mixed(x.bytes, y.bytes, z.bytes);
  }
  const auto set_bytes = [&](auto records) {
    auto& of_sized = sized.*records;
    for (std::size_t i = 0; i < of_sized.size(); ++i) {
      of_sized[i].bytes =
          mixed((a.*records)[i].bytes, (b.*records)[i].bytes, (c.*records)[i].bytes);
    }
  };
  set_bytes(&Program::collectives);
  set_bytes(&Program::allocations);
  return mixed.is_exact();
}

// Returns the slots of an expert for the tokens of a rank; 0 without experts.
std::int64_t slots_of(LayerKind kind, const ModelSpec& model, const Plan& plan,
                      std::int64_t micro_batch) {
  if (kind != LayerKind::kBlock || !has_experts(model)) return 0;
  const std::int64_t ranks = plan.degrees.cp * (plan.sequence_parallel ? plan.degrees.tp : 1);
  return expert_capacity(model.experts, model.seq / ranks * micro_batch);
}

}  // namespace

const LayerTrace* SizedTraces::known(std::int64_t micro_batch, std::int64_t slots) {
  for (const Sample& sample : samples_) {
    if (sample.micro_batch == micro_batch) return &sample.trace;
  }
  if (other_ && other_->micro_batch == micro_batch) return &other_->trace;
  const Mix by = mix_of(samples_, micro_batch, slots);
  if (by.divisor == 0) return nullptr;
  const bool done = mix(by, samples_[0].trace.program, samples_[1].trace.program,
                        samples_[by.samples - 1].trace.program, sized_.program);
  return done ? &sized_ : nullptr;
}

void SizedTraces::add(Sample sample) {
  if (!samples_.empty() && !have_same_structure(samples_[0].trace, sample.trace)) {
    const bool is_smaller = sample.micro_batch < samples_[0].micro_batch;
    other_ = is_smaller ? std::move(sample) : std::move(samples_[0]);
    if (is_smaller) return;
    samples_.clear();
  }
  if (samples_.size() == 3) samples_.pop_back();
  samples_.push_back(std::move(sample));
  // The first sample has the smallest micro-batch.
  std::sort(samples_.begin(), samples_.end(),
            [](const Sample& a, const Sample& b) { return a.micro_batch < b.micro_batch; });
  sized_ = samples_[0].trace;
}

const LayerTrace& SizedTraces::at(LayerKind kind, const ModelSpec& model, const Plan& plan,
                                  const TrainingOptions& options) {
  const std::int64_t size = plan.micro_batch;
  if (const LayerTrace* trace = known(size, slots_of(kind, model, plan, size))) return *trace;
  std::vector<std::int64_t> sizes = {size};
  if (samples_.size() < 2) sizes.push_back(2 * size);
  std::vector<LayerTrace> traces = trace_sizes(kind, model, plan, options, sizes);
  // The wanted size last: only one trace of another structure is kept.
  for (std::size_t i = sizes.size(); i-- > 0;) {
    add({sizes[i], slots_of(kind, model, plan, sizes[i]), std::move(traces[i])});
  }
  return *known(size, 0);
}

}  // namespace tpsim
