// The ranks of a run as one of them sees them: which it is, and how it forms groups.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/base/result.h"
#include "ranks/communicator.h"

namespace tpsim {

// Where messages go: to higher members of a group, to lower ones.
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
  // This rank's communicator of the group with these members: ranks of this world in group order,
  // this one among them. Every member calls this, all of them forming their groups in the same
  // order; each call forms a group of its own, whose messages mix with no other's.
  virtual std::unique_ptr<Communicator> communicator(Device& device, GroupKind group,
                                                     const std::vector<std::int64_t>& members) = 0;
  // The same for messages alone, and these only in the ways named.
  virtual std::unique_ptr<Communicator> message_group(Device& device,
                                                      const std::vector<std::int64_t>& members,
                                                      MessageWays ways);

 private:
  int rank_;
  int size_;
};

// All ranks of a world, in order.
std::vector<std::int64_t> all_ranks(const World& world);
// This rank's place among the members of a group that it forms.
GroupMember member_of(const World& world, GroupKind group,
                      const std::vector<std::int64_t>& members);

// What a rank does.
using RankBody = std::function<Status(World&)>;

// Runs a rank's body with every way of failing turned into an Error: running out of device memory
// into kDoesNotFit, ranks that are gone into kMissing, any other exception as error_from() says.
Status outcome_of(World& world, const RankBody& body);

// Thrown where this rank cannot go on because another has failed, which reports it: out of a
// collective, or by a rank that was fine itself.
class CommunicatorAborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tpsim
