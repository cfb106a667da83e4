#include "tests/emulated_gpu/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the callee-saved registers on the current stack and restores those of the other stack.
extern "C" void tpsim_switch_stacks(void** from, void* to);
asm(R"(
.text
.globl tpsim_switch_stacks
.type tpsim_switch_stacks, @function
tpsim_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tpsim_switch_stacks, .-tpsim_switch_stacks
)");

namespace tpsim::emulated {
namespace {

constexpr std::size_t kStack = std::size_t{256} << 10;

Fiber* starting = nullptr;

// Notifies AddressSanitizer which stack is in use.
void announce_switch([[maybe_unused]] void** keep, [[maybe_unused]] const void* stack,
                     [[maybe_unused]] std::size_t bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(keep, stack, bytes);
#endif
}
void finish_switch([[maybe_unused]] void* kept, [[maybe_unused]] const void** from,
                   [[maybe_unused]] std::size_t* bytes) {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(kept, from, bytes);
#endif
}

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

// A guard page precedes the stack.
Fiber::Fiber(std::function<void()> work) : work_(std::move(work)) {
  memory_ = mmap(nullptr, kStack + page(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory_, page(), PROT_NONE);
  stack_ = static_cast<std::byte*>(memory_) + page();
  // Initial stack, as if begin() had been called and had switched away: six registers, the resume
  // address, and space for a return address, below a multiple of 16.
  constexpr std::size_t kWords = 8;
  auto* const top = reinterpret_cast<void**>(static_cast<std::byte*>(stack_) + kStack);
  own_ = top - kWords;
  top[-2] = reinterpret_cast<void*>(&Fiber::begin);
}

Fiber::~Fiber() { munmap(memory_, kStack + page()); }

void Fiber::begin() {
  Fiber* const fiber = starting;
  finish_switch(nullptr, &fiber->outside_stack_, &fiber->outside_bytes_);
  fiber->work_();
}

void Fiber::resume() {
  starting = this;
  void* fake_stack = nullptr;
  announce_switch(&fake_stack, stack_, kStack);
  tpsim_switch_stacks(&outside_, own_);
  finish_switch(fake_stack, nullptr, nullptr);
}

void Fiber::pause() {
  announce_switch(&fake_stack_, outside_stack_, outside_bytes_);
  tpsim_switch_stacks(&own_, outside_);
  finish_switch(fake_stack_, &outside_stack_, &outside_bytes_);
}

}  // namespace tpsim::emulated
