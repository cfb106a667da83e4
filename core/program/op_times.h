// Time of a rank's steps by op, recorded in a run or predicted from a profile. The two are compared
// by joining the lists on their keys.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/units.h"
#include "core/program/program.h"

namespace tpsim {

// All executions of one op.
struct OpTime {
  OpRecord record;  // label of the first execution
  std::int64_t count = 0;
  Seconds time;  // total of all executions
};

// All calls of one kind, group and size. The time includes waiting for the other members.
struct CollectiveTime {
  CollectiveRecord record;  // label of the first call
  std::int64_t count = 0;
  Seconds time;
};

struct StepTimes {
  std::vector<OpTime> ops;                  // sorted by key
  std::vector<CollectiveTime> collectives;  // sorted by kind, group, ranks and bytes
};

// Removes ops and collectives that move more than `most` bytes. Returns their number.
std::size_t drop_larger(Bytes most, StepTimes& times);

// Sums times by key. Adding the same key again increases count and time.
class StepTimesSum {
 public:
  void add(const OpRecord& op, Seconds time, std::int64_t count = 1);
  void add(const CollectiveRecord& record, Seconds time, std::int64_t count = 1);
  void add(const StepTimes& times);

  // Returns the summed times per op and per collective, sorted as in StepTimes.
  StepTimes times() const;

 private:
  using Call = std::tuple<CollectiveKind, GroupKind, std::int64_t, std::int64_t>;

  std::map<OpKey, OpTime> ops_;
  std::map<Call, CollectiveTime> collectives_;
};

Seconds total(const std::vector<OpTime>& ops);
Seconds total(const std::vector<CollectiveTime>& collectives);

}  // namespace tpsim
