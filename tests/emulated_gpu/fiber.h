// Fibers: separate stacks between which one host thread switches (x86-64).
#pragma once

#include <cstddef>
#include <functional>

namespace tpsim::emulated {

// Runs `work` on a separate stack. One fiber runs at a time, and fibers do not start fibers.
class Fiber {
 public:
  // `work` must not return; it calls pause() when it is done.
  explicit Fiber(std::function<void()> work);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the fiber until it pauses. Must not be called by a fiber.
  void resume();
  // Returns to the caller of resume(). Called by the fiber itself.
  void pause();

 private:
  static void begin();

  std::function<void()> work_;
  void* own_ = nullptr;  // stack pointer of the fiber while it does not run
  void* outside_ = nullptr;
  void* memory_ = nullptr;
  void* stack_ = nullptr;
  void* fake_stack_ = nullptr;  // AddressSanitizer's stack for locals
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace tpsim::emulated
