#include "ridge/backend/cpu/kernels/moment_blocks.h"

#include "ridge/backend/cpu/kernels/moment_rows.h"
#include "ridge/backend/cpu/kernels/tile_program.h"

namespace ridge::cpu {

MomentBlocks::MomentBlocks(const OpCall& call, std::vector<MomentSlots> slots, int threads)
    : slots_(std::move(slots)),
      form_(FormOfMoment(call, slots_[0].input)),
      elements_(call.inputs[0].elements()),
      stream_(static_cast<uint32_t>(call.integer("stream"))),
      threads_(threads) {}

void MomentBlocks::Load(const KernelBuffers& b, int64_t first, int64_t count, Room& room) const {
  for (size_t k = 0; k < slots_.size(); ++k) {
    const MomentSlots& slots = slots_[k];
    const void* kept = b.inputs[slots.input];
    if (form_ == MomentForm::kRounded) {
      WidenRow(static_cast<const uint16_t*>(kept) + first, count, room.moments[k]);
      continue;
    }
    const float absmax =
        static_cast<const float*>(b.inputs[slots.absmax_input])[first / kCodeBlock];
    DecodeRun(slots.signs, static_cast<const uint8_t*>(kept) + first, absmax, count,
              room.moments[k]);
  }
}

void MomentBlocks::Store(const KernelBuffers& b, int64_t first, int64_t count, Room& room) const {
  for (size_t k = 0; k < slots_.size(); ++k) {
    const MomentSlots& slots = slots_[k];
    void* kept = b.outputs[slots.output];
    if (form_ == MomentForm::kRounded) {
      RoundRunAtRandom(room.moments[k], room.key, first, slots.upper_bits, count,
                       static_cast<uint16_t*>(kept) + first);
      continue;
    }
    static_cast<float*>(b.outputs[slots.absmax_output])[first / kCodeBlock] =
        EncodeRun(slots.signs, room.moments[k], count, static_cast<uint8_t*>(kept) + first);
  }
}

ElementKey MomentBlocks::KeyOf(const KernelBuffers& b) const {
  const auto* rng = static_cast<const int64_t*>(b.inputs[slots_[0].rng]);
  return ElementKeyOf({.seed = static_cast<uint64_t>(rng[0]),
                       .stream = stream_,
                       .step = static_cast<uint32_t>(rng[1])});
}

}  // namespace ridge::cpu
