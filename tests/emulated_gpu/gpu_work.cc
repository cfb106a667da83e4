// Counts the work of a block in one micro-batch, of its share of the step's end, and of the head.
// The emulated GPU counts kernels, GEMMs and copies. Bytes and collectives are counted here. Needs
// no GPU: TPSIM_EMULATED_GPU=idle build/emulated/tpsim_gpu_work
//
// Writes a Markdown table for a step with one micro-batch. --reduce-after: gradients are reduced at
// the step's end. --clear-first: all gradients are cleared first. --sum-after: dgrad all-reduces
// run after the wgrad GEMMs. --loss-twice: logits are read once for the maxima and once for the
// sums.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/rank_layout.h"
#include "core/scenario/catalogue.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "ranks/meta/meta_communicator.h"
#include "reference_model/layers/block.h"
#include "reference_model/layers/embedding.h"
#include "reference_model/layers/head.h"
#include "reference_model/parallel/process_groups.h"
#include "reference_model/parallel/transfers.h"
#include "reference_model/step/optimizer.h"
#include "tests/emulated_gpu/counts.h"

namespace tpsim {
namespace {

struct Work {
  emulated::Counts gpu;
  double bytes = 0;
  std::int64_t waited_for = 0;  // exposed collectives
  std::int64_t beside = 0;      // overlapped collectives
};

// Counts collectives and moves no data, since there are no other ranks.
class CountedCommunicator final : public MetaCommunicator {
 public:
  CountedCommunicator(Device& device, GroupMember member, Work& work)
      : MetaCommunicator(device, member.group, member.rank, member.size), work_(work) {}

 private:
  void do_all_reduce(const Tensor&, ReduceOp) override { ++work_.waited_for; }
  void do_all_gather(const Tensor&, const Tensor&) override { ++work_.waited_for; }
  void do_reduce_scatter(const Tensor&, const Tensor&) override { ++work_.waited_for; }
  void do_begin(const Begun&) override { ++work_.beside; }

  Work& work_;
};

class BytesRecorder final : public Recorder {
 public:
  explicit BytesRecorder(Work& work) : work_(work) {}
  void op_started(const OpRecord& op) override { work_.bytes += op.bytes; }

 private:
  Work& work_;
};

struct Case {
  const char* model;
  std::int64_t tp, dp;
};
constexpr Case kCases[] = {{"bloom-176b", 4, 8}, {"bloom-1b7", 1, 8}, {"llama-3-8b", 1, 8}};

// One rank of a plan.
class Rank {
 public:
  Rank(CudaDevice& device, const ModelSpec& model, const Plan& plan, const TrainingOptions& options)
      : device_(device),
        recorder_(work_),
        groups_(formed_groups(plan, options, 0),
                [&](const FormedGroup& group) {
                  return std::make_unique<CountedCommunicator>(
                      device, GroupMember{group.kind, 0, static_cast<int>(group.ranks)}, work_);
                }),
        context_{device, groups_.groups(), {}, model, plan, options},
        store_(context_) {
    device_.set_recorder(&recorder_);
  }
  virtual ~Rank() { device_.set_recorder(nullptr); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void print(const char* part) {
    name_ = fmt::format("{}, tp {}, {}", context_.model.name, context_.plan.degrees.tp, part);
    step();  // selects algorithms and allocates memory
    prints_ = true;
    begin();
    step();
  }

 protected:
  virtual void step() = 0;

  Tensor activation() {
    return allocate_activation(context_, residual_shape(context_), "activation");
  }

  void after(const char* phase) {
    if (!prints_) return;
    const emulated::Counts now = emulated::counts();
    fmt::print("| {} | {} | {} | {} | {} | {:.3f} | {} | {} | {} |\n", name_, phase,
               now.kernels - start_.kernels, now.products - start_.products,
               now.copies - start_.copies, work_.bytes * 1e-9, work_.waited_for, work_.beside,
               now.host_waits - start_.host_waits);
    begin();
  }

 private:
  void begin() {
    work_ = {};
    start_ = emulated::counts();
  }

  CudaDevice& device_;
  Work work_;
  BytesRecorder recorder_;
  OwnedGroups groups_;
  emulated::Counts start_;
  std::string name_;
  bool prints_ = false;

 protected:
  RankContext context_;
  ParameterStore store_;
};

class BlockBench final : public Rank {
 public:
  BlockBench(CudaDevice& device, const ModelSpec& model, const Plan& plan,
             const TrainingOptions& options)
      : Rank(device, model, plan, options),
        optimizer_(context_, store_, {}),
        block_(context_, store_, Block::add_to(context_, store_, 0), {}) {
    store_.materialize(1);
    optimizer_.materialize();
  }

 private:
  void step() override {
    store_.clear_gradients();
    after("gradients cleared");
    Tensor x = activation(), dy = activation();
    BlockSaved saved;
    block_.forward(x, saved);
    after("forward");
    store_.set_last_backward(true);
    block_.backward(dy, std::move(saved));
    store_.finish_shares();
    after("backward");
    optimizer_.reduce_gradients();
    after("reduction at the step's end");
    optimizer_.update(1);
    after("norm, update, gather");
  }

  Optimizer optimizer_;
  Block block_;
};

// The final norm, the logits and the loss.
class HeadBench final : public Rank {
 public:
  HeadBench(CudaDevice& device, const ModelSpec& model, const Plan& plan,
            const TrainingOptions& options)
      : Rank(device, model, plan, options),
        head_(context_, store_,
              add_word_embeddings(context_, store_, embedding_table_name(model), false)) {
    store_.materialize(1);
  }

 private:
  void step() override {
    store_.clear_gradients();
    after("gradients cleared");
    HeadSaved saved;
    head_.forward(activation(), share_tokens(context_, samples_, 1, "labels"), saved);
    after("forward");
    head_.backward(1.0F, std::move(saved));
    after("backward");
  }

  Head head_;
  const std::vector<std::int32_t> samples_ = std::vector<std::int32_t>(
      static_cast<std::size_t>(context_.plan.micro_batch * (context_.model.seq + 1)));
};

Plan plan_of(const ModelSpec& model, const Case& one, AttentionKind attention) {
  Plan plan;
  plan.degrees = {one.tp, 1, one.dp, 1};
  plan.micro_batch = 1;
  plan.global_batch = one.dp;
  plan.zero = 1;
  plan.recompute = Recompute::kNone;
  plan.attention = attention;
  plan.stage_layers = {model.layers};
  return plan;
}

struct Switch {
  std::string_view option;
  void (*turn_off)(TrainingOptions&);
};
constexpr auto kSwitches = std::to_array<Switch>(
    {{"--reduce-after", [](TrainingOptions& o) { o.overlap_gradient_reduction = false; }},
     {"--clear-first",
      [](TrainingOptions& o) { o.gradient_accumulation = GradientAccumulation::kFused; }},
     {"--sum-after", [](TrainingOptions& o) { o.overlap_tensor_reduction = false; }},
     {"--loss-twice", [](TrainingOptions& o) { o.online_loss = false; }}});

// Returns false for an unknown option.
bool turn_off(std::string_view word, TrainingOptions& options) {
  for (const Switch& one : kSwitches) {
    if (word != one.option) continue;
    one.turn_off(options);
    return true;
  }
  return false;
}

Status run(std::span<char* const> words) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(const StackSpec stack, catalogue.load_stack("reference"));
  TrainingOptions options = stack.training;
  for (const char* word : words) {
    if (!turn_off(word, options)) {
      return Error{ErrorKind::kBadInput, std::string("no option ") + word, "",
                   "give some of --reduce-after --clear-first --sum-after --loss-twice"};
    }
  }
  fmt::print(
      "| part of | phase | kernels | products | copies | GB | collectives waited for | "
      "beside | host waits |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Case& one : kCases) {
    TPSIM_TRY(const ModelSpec model, catalogue.load_model(one.model));
    for (const AttentionKind attention : {AttentionKind::kFlash, AttentionKind::kUnfused}) {
      if (attention == AttentionKind::kUnfused && one.tp == 1) continue;
      TPSIM_TRY(const auto device, CudaDevice::create());
      const Plan plan = plan_of(model, one, attention);
      TPSIM_TRY_STATUS(validate(plan, model));
      BlockBench(*device, model, plan, options)
          .print(attention == AttentionKind::kFlash ? "flash" : "unfused");
    }
    TPSIM_TRY(const auto device, CudaDevice::create());
    HeadBench(*device, model, plan_of(model, one, AttentionKind::kFlash), options).print("head");
  }
  return Ok{};
}

}  // namespace
}  // namespace tpsim

int main(int argc, char** argv) {
  const tpsim::Status status = tpsim::run({argv + 1, static_cast<std::size_t>(argc - 1)});
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", to_string(status.error()));
  return static_cast<int>(status.error().kind);
}
