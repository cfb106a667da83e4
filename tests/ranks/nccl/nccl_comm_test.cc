// Reactions to NCCL failures, with a fake library: no GPU, no other ranks.
#include "ranks/nccl/nccl_comm.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>

#include "ranks/nccl/nccl_watch.h"
#include "ranks/world.h"

namespace tpsim {
namespace {

using std::chrono::milliseconds;

// Calls that the fake library received, and its results.
struct Stage {
  ncclResult_t first = ncclInProgress;  // result of joining, and of a collective
  ncclResult_t state = ncclSuccess;     // result of ncclCommGetAsyncError
  int asked_before = 0;                 // number of ncclInProgress results before `state`
  int asked = 0, finalized = 0, destroyed = 0;
  std::atomic<int> aborted = 0;
  int version = NCCL_VERSION_CODE;
  std::string group;  // calls inside a group, including its ends: "(aa)"
};
Stage stage;

void set_stage() {
  std::destroy_at(&stage);
  std::construct_at(&stage);
}

ncclResult_t join(ncclComm_t* comm, int, ncclUniqueId, int, ncclConfig_t* config) {
  CHECK(config->blocking == 0);
  *comm = reinterpret_cast<ncclComm_t>(&stage);
  return stage.first;
}
ncclResult_t state_of(ncclComm_t, ncclResult_t* state) {
  *state = stage.asked++ < stage.asked_before ? ncclInProgress : stage.state;
  return ncclSuccess;
}

NcclLibrary stand_in() {
  set_stage();
  NcclLibrary nccl;
  nccl.init_rank = join;
  nccl.async_error = state_of;
  nccl.finalize = [](ncclComm_t) { return ++stage.finalized, ncclSuccess; };
  nccl.destroy = [](ncclComm_t) { return ++stage.destroyed, ncclSuccess; };
  nccl.abort = [](ncclComm_t) {
    if (stage.version >= 22200) stage.group += 'a';
    return ++stage.aborted, ncclSuccess;
  };
  nccl.version = [](int* version) { return *version = stage.version, ncclSuccess; };
  nccl.group_start = [] { return stage.group += '(', ncclSuccess; };
  nccl.group_end = [] { return stage.group += ')', ncclSuccess; };
  nccl.error_string = [](ncclResult_t) { return "remote process exited"; };
  nccl.last_error = [](ncclComm_t) { return "socket closed"; };
  return nccl;
}

class FakeMark final : public WorkMark {
 public:
  FakeMark(bool& reached, int& sets) : reached_(reached), sets_(sets) {}
  void set(cudaStream_t) override { ++sets_; }
  bool reached() const override { return reached_; }

 private:
  bool& reached_;
  int& sets_;
};

// A communicator whose work is complete if `reached` is true.
struct WatchedComm {
  NcclLibrary nccl = stand_in();
  bool reached = true;
  int sets = 0;
  std::shared_ptr<NcclComm> comm;

  explicit WatchedComm(milliseconds limit = milliseconds(20))
      : comm(std::make_shared<NcclComm>(nccl, reinterpret_cast<ncclComm_t>(&stage),
                                        std::make_unique<FakeMark>(reached, sets), limit)) {}
  void enqueue(ncclResult_t result = ncclSuccess) const {
    comm->enqueue("all_reduce", nullptr, [=](ncclComm_t) { return result; });
  }
};

void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 5000 && !holds(); ++i) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace

TEST_CASE("a group is joined when all members have arrived, after any number of status queries") {
  const NcclLibrary nccl = stand_in();
  stage.asked_before = 7;
  CHECK(joined(nccl, {{}, 1, 4}, milliseconds(5000)) == reinterpret_cast<ncclComm_t>(&stage));
  CHECK(stage.asked == 8);
  CHECK(stage.aborted == 0);
}

TEST_CASE("missing members and errors end the joining with a message") {
  const NcclLibrary nccl = stand_in();
  stage.asked_before = 1 << 30;
  CHECK_THROWS_WITH(joined(nccl, {{}, 1, 4}, milliseconds(20)),
                    "joining a group of 4 ranks: the other ranks did not join within 0.02 s");
  CHECK(stage.aborted == 1);
  set_stage();
  stage.first = ncclSystemError;
  CHECK_THROWS_WITH(joined(nccl, {{}, 1, 4}, milliseconds(20)),
                    Catch::Contains("remote process exited (socket closed)"));
}

TEST_CASE("a failure of another rank ends the joining before the timeout") {
  const NcclLibrary nccl = stand_in();
  stage.asked_before = 1 << 30;
  int asked = 0;
  const auto failure = [&] { return std::string(++asked < 3 ? "" : "rank 2: out of memory"); };
  CHECK_THROWS_WITH(joined(nccl, {{}, 1, 4}, std::chrono::hours(1), 0, failure),
                    "joining a group of 4 ranks: rank 2: out of memory");
  CHECK(asked == 3);
  CHECK(stage.aborted == 1);
}

TEST_CASE("a collective that NCCL starts late is waited for, until a timeout") {
  WatchedComm late(milliseconds(5000));
  stage.asked_before = 3;
  late.enqueue(ncclInProgress);
  CHECK(late.sets == 1);

  WatchedComm never;
  stage.asked_before = 1 << 30;
  CHECK_THROWS_WITH(never.enqueue(ncclInProgress),
                    "all_reduce: NCCL did not accept the call within 0.02 s");
  CHECK(stage.aborted == 0);  // the watch aborts it together with all others
  CHECK(never.comm->trouble() == "all_reduce: NCCL did not accept the call within 0.02 s");
  CHECK_THROWS_AS(never.enqueue(), CommunicatorAborted);  // all later collectives fail too
}

TEST_CASE("waiting for a collective that NCCL starts within microseconds does not sleep") {
  WatchedComm one(milliseconds(60'000));
  one.nccl.async_error = [](ncclComm_t, ncclResult_t* state) {
    static std::chrono::steady_clock::time_point first;
    const auto now = std::chrono::steady_clock::now();
    if (stage.asked++ == 0) first = now;
    *state = now - first < std::chrono::microseconds(100) ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
  };
  // On a busy machine other processes may run at every yield, and the measurement would be
  // meaningless.
  const auto yields = [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    int count = 0;
    for (; std::chrono::steady_clock::now() < end; ++count) std::this_thread::yield();
    return count;
  };
  bool is_quiet = false;
  int most = 0;
  for (int turn = 0; turn < 200 && most < 10; ++turn) {
    is_quiet = yields() >= 20;
    stage.asked = 0;
    one.enqueue(ncclInProgress);
    if (is_quiet && yields() >= 20) most = std::max(most, stage.asked);
  }
  if (most == 0) return;
  CHECK(most >= 10);
}

TEST_CASE("the timeout counts from the oldest unfinished work") {
  WatchedComm one;
  one.reached = false;
  one.enqueue();
  one.enqueue();
  CHECK(one.sets == 1);
  std::this_thread::sleep_for(milliseconds(25));
  REQUIRE(one.comm->trouble().has_value());
  CHECK_THAT(*one.comm->trouble(), Catch::Contains("has not ended within 0.02 s"));
  one.reached = true;  // the work completes after all
  CHECK_FALSE(one.comm->trouble().has_value());
  one.enqueue();
  CHECK(one.sets == 2);
}

TEST_CASE("members finalize together; one that fails aborts alone") {
  { WatchedComm peaceful; }
  CHECK(stage.finalized == 1);
  CHECK(stage.destroyed == 1);
  CHECK(stage.aborted == 0);
  try {
    WatchedComm failing;
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
    CHECK(stage.finalized == 0);
    CHECK(stage.aborted == 1);
  }
}

TEST_CASE("the watch aborts all communicators at the first error, with its text") {
  WatchedComm one;
  auto other = std::make_shared<NcclComm>(one.nccl, reinterpret_cast<ncclComm_t>(&one),
                                          std::make_unique<FakeMark>(one.reached, one.sets),
                                          milliseconds(20));
  NcclWatch watch({.look_every = milliseconds(1)});
  watch.add(one.comm);
  watch.add(other);
  one.enqueue();
  CHECK(watch.trouble().text.empty());
  stage.state = ncclRemoteError;
  wait_until([&] { return !watch.trouble().text.empty(); });
  CHECK_THAT(watch.trouble().text, Catch::Contains("remote process exited (socket closed)"));
  CHECK_FALSE(watch.trouble().elsewhere);
  wait_until([&] { return stage.aborted == 2; });
  CHECK_THROWS_AS(one.enqueue(), CommunicatorAborted);
  watch.abort("again");
  CHECK(stage.group == "(aa)");
}

TEST_CASE("without abort groups in NCCL, communicators are aborted concurrently") {
  WatchedComm one;
  stage.version = 22105;
  auto other = std::make_shared<NcclComm>(one.nccl, reinterpret_cast<ncclComm_t>(&one),
                                          std::make_unique<FakeMark>(one.reached, one.sets),
                                          milliseconds(20));
  one.nccl.abort = [](ncclComm_t) {
    ++stage.aborted;
    wait_until([] { return stage.aborted == 2; });  // its kernel waits for the other one's
    return stage.aborted == 2 ? ncclSuccess : ncclInternalError;
  };
  std::atomic<int> begun = 0;
  abort_together({one.comm, other}, "rank 3: no memory", [&] { ++begun; });
  CHECK(stage.aborted == 2);
  CHECK(begun == 2);
}

TEST_CASE("an abort that hangs ends with the message") {
  static std::promise<void> lets_go;
  WatchedComm one;
  one.nccl.abort = [](ncclComm_t) {
    lets_go.get_future().wait();
    return ncclSuccess;
  };
  std::string said;
  NcclWatch watch({.abort_hangs =
                       [&](const std::string& reason) {
                         said = reason;
                         lets_go.set_value();
                       },
                   .abort_limit = milliseconds(5)});
  watch.add(one.comm);
  watch.abort("rank 3: no memory");
  CHECK(said == "rank 3: no memory");
}

TEST_CASE("a communicator is aborted before or after a call of NCCL, never during a call") {
  WatchedComm one;
  std::promise<void> called;
  std::future<void> aborting = std::async(std::launch::async, [&] {
    called.get_future().wait();
    abort_together({one.comm}, "rank 3: no memory");
  });
  bool freed = false;  // while NCCL still uses the communicator
  one.comm->enqueue("all_reduce", nullptr, [&](ncclComm_t) {
    called.set_value();
    freed = aborting.wait_for(milliseconds(200)) == std::future_status::ready;
    return ncclSuccess;
  });
  CHECK_FALSE(freed);
  aborting.get();
  CHECK(stage.aborted == 1);
  CHECK_THROWS_WITH(one.enqueue(), "rank 3: no memory");
}

TEST_CASE("a failure of another rank ends this rank's collectives") {
  WatchedComm one(milliseconds(60'000));
  std::atomic<bool> failed{false};
  NcclWatch watch({.elsewhere = [&] { return std::string(failed ? "rank 3: no memory" : ""); },
                   .look_every = milliseconds(1),
                   .ask_every = milliseconds(1)});
  watch.add(one.comm);
  one.enqueue();
  failed = true;
  wait_until([&] { return !watch.trouble().text.empty(); });
  CHECK(watch.trouble().elsewhere);
  wait_until([] { return stage.aborted == 1; });  // the error is reported before the abort
  CHECK_THROWS_WITH(one.enqueue(), "rank 3: no memory");
}

}  // namespace tpsim
