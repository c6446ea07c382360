// MomentBlocks: an optimizer's moments that are not kept in f32 (moments.h), block by block in f32.
//
// A block is read, updated and written while it lies in the first cache, so memory sees the few
// bytes only.  Blocks are those of the codes, and random words go by element, so the result does
// not depend on the threads.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/element_words.h"
#include "ridge/graph/ops/shared/moments.h"

namespace ridge::cpu {

class MomentBlocks {
 public:
  // REQUIRES: one or two moments, which have one form; all arrays row-major.
  MomentBlocks(const OpCall& call, std::vector<MomentSlots> slots, int threads);

  // Whether the moments have a form of their own.
  static bool Takes(const OpCall& call, const MomentSlots& slots) {
    return call.has_input(slots.input) && FormOfMoment(call, slots.input) != MomentForm::kWhole;
  }

  // Calls f(first, count, moments) for each block; moments[k] is moment k, which f changes.
  template <typename F>
  void ForEach(const KernelBuffers& b, const F& f) const {
    ParallelFor(threads_, elements_, kGrain, [&](int64_t begin, int64_t end) {
      Room room;
      if (form_ == MomentForm::kRounded) room.key = KeyOf(b);
      for (int64_t first = begin; first < end; first += kCodeBlock) {
        const int64_t count = std::min(kCodeBlock, end - first);
        Load(b, first, count, room);
        f(first, count, room.moments);
        Store(b, first, count, room);
      }
    });
  }

 private:
  static constexpr int64_t kGrain = 4 * kCodeBlock;  // threads never share a cache line

  struct Room {
    alignas(64) std::array<float, kCodeBlock> values[2];
    ElementKey key = {};
    float* const moments[2] = {values[0].data(), values[1].data()};
  };

  void Load(const KernelBuffers& b, int64_t first, int64_t count, Room& room) const;
  void Store(const KernelBuffers& b, int64_t first, int64_t count, Room& room) const;
  ElementKey KeyOf(const KernelBuffers& b) const;

  const std::vector<MomentSlots> slots_;
  const MomentForm form_;
  const int64_t elements_;
  const uint32_t stream_;
  const int threads_;
};

}  // namespace ridge::cpu
