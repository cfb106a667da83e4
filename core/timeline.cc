#include "core/timeline.h"

namespace tpsim {

std::string_view name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::kForward: return "forward";
    case SpanKind::kBackward: return "backward";
    case SpanKind::kTransfer: return "transfer";
    case SpanKind::kGradientReduction: return "gradient reduction";
    case SpanKind::kOptimizer: return "optimizer";
    case SpanKind::kParameterGather: return "parameter gather";
    case SpanKind::kOther: return "other";
  }
  return "?";
}

}  // namespace tpsim
