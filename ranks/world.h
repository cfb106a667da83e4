// The ranks of a run, from the view of one rank: its rank, the number of ranks, and the creation of
// groups.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/base/result.h"
#include "ranks/communicator.h"

namespace tpsim {

// Directions of P2P messages in a group. `up`: to members with a higher index. `down`: to members
// with a lower index.
struct MessageWays {
  bool up = true;
  bool down = true;
};

class World {
 public:
  World(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~World() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Creates this rank's communicator of the group with these members. `members` are in group order
  // and include this rank. Collective: all members must create their groups in the same order. Each
  // call creates a separate group, whose messages do not mix with messages of other groups.
  virtual std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                                     const std::vector<std::int64_t>& members) = 0;
  // Like communicator(), but only for P2P messages in the given directions.
  virtual std::unique_ptr<Communicator> message_group(Device& device,
                                                      const std::vector<std::int64_t>& members,
                                                      MessageWays ways);

 private:
  int rank_;
  int size_;
};

// Returns all ranks of a world, in order.
std::vector<std::int64_t> all_ranks(const World& world);
// Returns this rank's position in a group.
GroupMember member_of(const World& world, GroupKind group,
                      const std::vector<std::int64_t>& members);

// The function that each rank runs.
using RankBody = std::function<Status(World&)>;

// Runs a rank's body and converts every failure to an Error: out of device memory to kDoesNotFit,
// lost ranks to kMissing, other exceptions by error_from().
Status outcome_of(World& world, const RankBody& body);

// Thrown if this rank cannot continue because another rank has failed. The other rank reports the
// failure.
class CommunicatorAborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tpsim
