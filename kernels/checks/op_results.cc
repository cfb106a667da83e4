// The output tensors of each op.
#include "kernels/checks/op_cases.h"

namespace tpsim {
namespace {

using Results = std::vector<OpResult>;

Results results(const Matmul& op) { return {{"c", op.c.tensor}}; }
Results results(const NormForward& op) {
  return {{"y", op.y}, {"mean", op.mean}, {"rstd", op.rstd}};
}
Results results(const NormBackward& op) {
  return {{"dx", op.dx}, {"dgain", op.dgain}, {"dbias", op.dbias}};
}
Results results(const SoftmaxForward& op) { return {{"probabilities", op.scores}}; }
Results results(const SoftmaxBackward& op) {
  return {{"dscores", op.dprobs}, {"dsinks", op.dsinks}};
}
Results results(const FlashForward& op) { return {{"o", op.o.tensor}, {"log_sum", op.log_sum}}; }
Results results(const FlashBackward& op) {
  return {{"dq", op.dq.tensor}, {"dk", op.dk.tensor}, {"dv", op.dv.tensor}, {"dsinks", op.dsinks}};
}
Results results(const Rotary& op) { return {{"x", op.x.tensor}}; }
Results results(const HeadNormForward& op) { return {{"x", op.x.tensor}, {"raw", op.raw}}; }
Results results(const HeadNormBackward& op) { return {{"dx", op.dx.tensor}, {"dgain", op.dgain}}; }
Results results(const SoftCapForward& op) { return {{"y", op.y}}; }
Results results(const SoftCapBackward& op) { return {{"dx", op.dy}}; }
Results results(const PositionScale& op) { return {{"x", op.x.tensor}}; }
Results results(const HeadSum& op) { return {{"y", op.y.tensor}}; }
Results results(const ColumnBias& op) { return {{"x", op.x.tensor}}; }
Results results(const ColumnBiasGradient& op) { return {{"sums", op.sums}}; }
Results results(const BiasGeluForward& op) { return {{"y", op.y}}; }
Results results(const BiasGeluBackward& op) { return {{"dx", op.dx}}; }
Results results(const SwigluForward& op) { return {{"y", op.y}}; }
Results results(const SwigluBackward& op) { return {{"dx", op.dx}}; }
Results results(const BiasResidual& op) { return {{"y", op.y}}; }
Results results(const DropoutForward& op) { return {{"y", op.y}, {"mask", op.mask}}; }
Results results(const DropoutBackward& op) { return {{"dx", op.dx}}; }
Results results(const ColumnSum& op) { return {{"sums", op.sums}}; }
Results results(const EmbeddingForward& op) { return {{"y", op.y}}; }
Results results(const EmbeddingBackward& op) { return {{"dtable", op.dtable}}; }
Results results(const PositionForward& op) { return {{"x", op.x}}; }
Results results(const PositionBackward& op) { return {{"dtable", op.dtable}}; }
Results results(const RouteForward& op) {
  return {{"weights", op.weights},
          {"experts", op.experts},
          {"slots", op.slots},
          {"choices", op.choices}};
}
Results results(const RouteBackward& op) { return {{"dlogits", op.dlogits}}; }
Results results(const PermuteTokens& op) { return {{"y", op.y}}; }
Results results(const UnpermuteTokens& op) { return {{"y", op.y}}; }
Results results(const RouteWeightGradient& op) { return {{"dweights", op.dweights}}; }
Results results(const VocabMax& op) {
  Results all{{"max", op.max}};
  if (op.sums.defined()) all.push_back({"sums", op.sums});
  return all;
}
Results results(const VocabRescale& op) { return {{"sums", op.sums}}; }
Results results(const VocabSums& op) { return {{"sums", op.sums}}; }
Results results(const CrossEntropyLoss& op) { return {{"loss", op.loss}}; }
Results results(const CrossEntropyBackward& op) { return {{"dlogits", op.logits}}; }
Results results(const Add& op) { return {{"into", op.into}}; }
Results results(const Scale& op) { return {{"x", op.x}}; }
Results results(const Fill& op) { return {{"x", op.x}}; }
Results results(const Copy& op) { return {{"to", op.to}}; }
Results results(const CopyMatrices& op) { return {{"to", op.to.tensor}}; }
Results results(const Cast& op) { return {{"to", op.to}}; }
Results results(const SumSquares& op) { return {{"sum", op.sum}}; }
Results results(const AdamW& op) {
  return {{"master", op.master},
          {"momentum", op.momentum},
          {"variance", op.variance},
          {"weights", op.weights}};
}
Results results(const Axpby& op) { return {{"y", op.y}}; }
Results results(const InitNormal& op) { return {{"x", op.x}}; }

}  // namespace

std::vector<OpResult> results_of(const Op& op) {
  Results all = std::visit([](const auto& any) { return results(any); }, op);
  std::erase_if(all, [](const OpResult& result) { return !result.tensor.defined(); });
  return all;
}

}  // namespace tpsim
