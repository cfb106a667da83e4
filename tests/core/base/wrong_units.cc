// Compiled once as it is, which must succeed, and once for each line that WRONG turns on, which
// must not: so that a line that fails for another reason is noticed.
#include "core/base/units.h"
#include "core/program/label.h"

namespace tpsim {

constexpr Bytes kMemory(80e9);
constexpr Seconds kStep(104.5);
constexpr BytesPerSecond kRate = kMemory / kStep;
static_assert(kRate * kStep > Bytes());

#if WRONG == 1  // seconds are no bytes
constexpr auto kSum = kMemory + kStep;
#elif WRONG == 2  // a bare number has no unit
constexpr Seconds kBare = 104.5;
#elif WRONG == 3  // value() says that the unit is dropped
constexpr double kDropped = kStep;
#elif WRONG == 4  // rates of different things do not compare
constexpr bool kCompared = kRate < FlopsPerSecond(1e12);
#elif WRONG == 5  // a product of units is another unit
constexpr Bytes kProduct = kMemory * kStep;
#elif WRONG == 6  // a label without the part of the model that it belongs to
constexpr Label kNoPart("attention.qkv");
#endif

}  // namespace tpsim
