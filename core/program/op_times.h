// Where the time of a rank's steps went, op by op: as a run records it, or as a profile predicts
// it. Two of these lists are joined by their keys to compare the two.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/units.h"
#include "core/program/program.h"

namespace tpsim {

// All runs of one op.
struct OpTime {
  OpRecord record;  // its label is that of the first run
  std::int64_t count = 0;
  Seconds time;  // of all of them together
};

// All calls of one kind, group and size. Their time holds the wait for the other members.
struct CollectiveTime {
  CollectiveRecord record;  // its label is that of the first call
  std::int64_t count = 0;
  Seconds time;
};

struct StepTimes {
  std::vector<OpTime> ops;                  // by key
  std::vector<CollectiveTime> collectives;  // by kind, group, ranks and bytes
};

// Sums up times by key. Adding a key again adds to its count and time.
class StepTimesSum {
 public:
  void add(const OpRecord& op, Seconds time, std::int64_t count = 1);
  void add(const CollectiveRecord& record, Seconds time, std::int64_t count = 1);
  void add(const StepTimes& times);

  // In the order that StepTimes states.
  StepTimes times() const;

 private:
  using Call = std::tuple<CollectiveKind, GroupKind, std::int64_t, std::int64_t>;

  std::map<OpKey, OpTime> ops_;
  std::map<Call, CollectiveTime> collectives_;
};

Seconds total(const std::vector<OpTime>& ops);
Seconds total(const std::vector<CollectiveTime>& collectives);

}  // namespace tpsim
