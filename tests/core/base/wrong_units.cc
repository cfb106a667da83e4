// Must compile without WRONG, and must fail to compile for each value of WRONG. The first build
// shows that no other line fails.
#include "core/base/units.h"
#include "core/program/label.h"

namespace tpsim {

constexpr Bytes kMemory(80e9);
constexpr Seconds kStep(104.5);
constexpr BytesPerSecond kRate = kMemory / kStep;
static_assert(kRate * kStep > Bytes());

#if WRONG == 1  // seconds are not bytes
constexpr auto kSum = kMemory + kStep;
#elif WRONG == 2  // a bare number has no unit
constexpr Seconds kBare = 104.5;
#elif WRONG == 3  // dropping a unit needs value()
constexpr double kDropped = kStep;
#elif WRONG == 4  // rates of different things do not compare
constexpr bool kCompared = kRate < FlopsPerSecond(1e12);
#elif WRONG == 5  // a product of units is another unit
constexpr Bytes kProduct = kMemory * kStep;
#elif WRONG == 6  // a label without its part of the model
constexpr Label kNoPart("attention.qkv");
#endif

}  // namespace tpsim
