// Stacks of their own that one thread of the host switches between (x86-64).
#pragma once

#include <cstddef>
#include <functional>

namespace tpsim::emulated {

// Runs `work` on its own stack. One fiber at a time; fibers do not start fibers.
class Fiber {
 public:
  // `work` does not return: it pauses when nothing is left to do.
  explicit Fiber(std::function<void()> work);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it pauses; by who is no fiber.
  void resume();
  // Back to who resumed; by the fiber itself.
  void pause();

 private:
  static void begin();

  std::function<void()> work_;
  void* own_ = nullptr;  // stack pointers, of who does not run
  void* outside_ = nullptr;
  void* memory_ = nullptr;
  void* stack_ = nullptr;
  void* fake_stack_ = nullptr;  // AddressSanitizer's, of locals
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

}  // namespace tpsim::emulated
