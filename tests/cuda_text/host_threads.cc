#include "tests/cuda_text/host_threads.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#if defined(RIDGE_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the callee's registers on this stack and goes on where `to` was saved.
extern "C" void RidgeSwitchStack(void** save, void* to);
asm(R"(
.text
.type RidgeSwitchStack, @function
RidgeSwitchStack:
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
)");

namespace ridge::cuda_text {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr unsigned kWarp = 32;

enum class Wait : uint8_t { kNone, kBarrier, kLanes, kDone };

struct Fiber {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  void* at = nullptr;  // its stack pointer while another runs
  Wait wait = Wait::kNone;
  unsigned mask = 0;
  unsigned long long word = 0;
};

// Of the thread of the host that runs the launch.
thread_local class Block* current_block = nullptr;

class Block {
 public:
  std::string error;
  RidgeHostBlock now = {};

  void Run(const HostLaunch& launch, bool backward) {
    launch_ = &launch;
    current_block = this;
    now.synchronize = [] { current_block->Yield(Wait::kBarrier); };
    now.exchange = [](unsigned mask, unsigned long long word, int lane) {
      return current_block->Exchange(mask, word, lane);
    };
    if (!launch.kernel->barriers) return RunPlain(backward);
    Start();
    while (RunAll(backward) < launch.threads && error.empty()) Release();
  }

 private:
  // Threads that wait for nobody need no stack of their own.
  void RunPlain(bool backward) {
    for (unsigned i = 0; i < launch_->threads; ++i) {
      now.thread_index = {backward ? launch_->threads - 1 - i : i, 0, 0};
      launch_->kernel->call(launch_->arguments);
    }
  }

  void Start() {
    if (fibers_.size() < launch_->threads) fibers_.resize(launch_->threads);
    for (unsigned t = 0; t < launch_->threads; ++t) {
      Fiber& fiber = fibers_[t];
      auto* top = reinterpret_cast<void**>(
          reinterpret_cast<uintptr_t>(fiber.stack.get() + kStackBytes) & ~uintptr_t{15});
      *--top = nullptr;  // where Entry() would return to
      *--top = reinterpret_cast<void*>(&Entry);
      for (int registers = 0; registers < 6; ++registers) *--top = nullptr;
      fiber.at = top;
      fiber.wait = Wait::kNone;
    }
  }

  static void Entry() {
    Block& block = *current_block;
    block.Arrived();
    block.launch_->kernel->call(block.launch_->arguments);
    block.Yield(Wait::kDone);
  }

  // Runs every thread that can until it waits; returns how many are done.
  unsigned RunAll(bool backward) {
    unsigned done = 0;
    for (unsigned i = 0; i < launch_->threads; ++i) {
      running_ = backward ? launch_->threads - 1 - i : i;
      if (fibers_[running_].wait == Wait::kNone) {
        now.thread_index = {running_, 0, 0};
        SwitchTo(fibers_[running_]);
      }
    }
    for (unsigned t = 0; t < launch_->threads; ++t) done += fibers_[t].wait == Wait::kDone;
    return done;
  }

  // Lets those go on whose partners have come.
  void Release() {
    bool moved = false;
    for (unsigned first = 0; first < launch_->threads; first += kWarp) moved |= ReleaseWarp(first);
    if (moved) return;
    for (unsigned t = 0; t < launch_->threads; ++t) {
      if (fibers_[t].wait != Wait::kBarrier) {
        error = fibers_[t].wait == Wait::kDone ? "__syncthreads() that not all threads reach"
                                               : "lanes of a warp wait for lanes that do not come";
        return;
      }
    }
    for (unsigned t = 0; t < launch_->threads; ++t) fibers_[t].wait = Wait::kNone;
  }

  bool ReleaseWarp(unsigned first) {
    unsigned come = 0, wanted = 0;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (fibers_[first + lane].wait != Wait::kLanes) continue;
      come |= 1u << lane;
      wanted |= fibers_[first + lane].mask;
    }
    if (come == 0 || come != wanted) return false;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((come >> lane & 1u) != 0) fibers_[first + lane].wait = Wait::kNone;
    }
    return true;
  }

  unsigned long long Exchange(unsigned mask, unsigned long long word, int lane) {
    Fiber& own = fibers_[running_];
    const unsigned first = running_ / kWarp * kWarp;
    if ((mask >> (running_ % kWarp) & 1u) == 0) error = "a lane outside its own mask";
    own.mask = mask;
    own.word = word;
    Yield(Wait::kLanes);  // all have written
    const unsigned long long got = fibers_[first + static_cast<unsigned>(lane)].word;
    Yield(Wait::kLanes);  // all have read
    return got;
  }

  void SwitchTo(Fiber& fiber) {
#if defined(RIDGE_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(&host_shadow_, fiber.stack.get(), kStackBytes);
#endif
    RidgeSwitchStack(&host_at_, fiber.at);
#if defined(RIDGE_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(host_shadow_, nullptr, nullptr);
#endif
  }

  void Yield(Wait wait) {
    Fiber& fiber = fibers_[running_];
    fiber.wait = wait;
#if defined(RIDGE_ADDRESS_SANITIZER)
    __sanitizer_start_switch_fiber(nullptr, host_stack_, host_stack_bytes_);
#endif
    RidgeSwitchStack(&fiber.at, host_at_);
    Arrived();
  }

  void Arrived() {
#if defined(RIDGE_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(nullptr, &host_stack_, &host_stack_bytes_);
#endif
  }

  const HostLaunch* launch_ = nullptr;
  std::vector<Fiber> fibers_;
  unsigned running_ = 0;
  void* host_at_ = nullptr;
#if defined(RIDGE_ADDRESS_SANITIZER)
  void* host_shadow_ = nullptr;
  const void* host_stack_ = nullptr;
  size_t host_stack_bytes_ = 0;
#endif
};

}  // namespace

std::string RunLaunch(const HostLaunch& launch, ThreadOrder order, const RidgeHostBlock** now) {
  static thread_local Block block;
  block.error.clear();
  *now = &block.now;
  block.now.block_extent = {launch.threads, 1, 1};
  block.now.grid_extent = {launch.blocks, 1, 1};
  if (launch.threads == 0 || launch.threads % kWarp != 0 || launch.threads > 1024)
    return "threads of a block: a multiple of 32, at most 1024";
  const bool backward = order == ThreadOrder::kBackward;
  for (unsigned b = 0; b < launch.blocks && block.error.empty(); ++b) {
    const RidgeHostKernel& kernel = *launch.kernel;
    if (kernel.shared_end > kernel.shared)
      std::memset(kernel.shared, 0xFF, static_cast<size_t>(kernel.shared_end - kernel.shared));
    block.now.block_index = {backward ? launch.blocks - 1 - b : b, 0, 0};
    block.Run(launch, backward);
  }
  return block.error;
}

}  // namespace ridge::cuda_text
