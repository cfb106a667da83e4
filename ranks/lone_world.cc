#include "ranks/lone_world.h"

namespace tpsim {
namespace {

// Communicator never gets here in a group of one.
class LoneCommunicator final : public Communicator {
 public:
  LoneCommunicator(Device& device, GroupKind group) : Communicator(device, group, 0, 1) {}

 protected:
  void do_all_reduce(const Tensor&, ReduceOp) override { fail(); }
  void do_all_gather(const Tensor&, const Tensor&) override { fail(); }
  void do_reduce_scatter(const Tensor&, const Tensor&) override { fail(); }
  void do_all_to_all(const Tensor&, const Tensor&) override { fail(); }
  void do_broadcast(const Tensor&, int) override { fail(); }
  void do_send(const Tensor&, int) override { fail(); }
  void do_receive(const Tensor&, int) override { fail(); }

 private:
  [[noreturn]] static void fail() { throw BugError("a lone rank has nobody to talk to"); }
};

}  // namespace

std::unique_ptr<Communicator> lone_communicator(Device& device, GroupKind group) {
  return std::make_unique<LoneCommunicator>(device, group);
}

std::unique_ptr<Communicator> LoneWorld::communicator(Device& device, GroupKind group,
                                                      const std::vector<std::int64_t>& members) {
  TPSIM_CHECK(members.size() == 1 && members[0] == 0, "a lone rank's groups hold it alone");
  return lone_communicator(device, group);
}

Status run_alone(const RankBody& body) {
  LoneWorld world;
  return outcome_of(world, body);
}

}  // namespace tpsim
