#pragma once
#include <cstdint>

#include "ridge/data/sound/sound_file.h"

namespace ridge {

// out[i] = sample(i, channel), or the mean of sample(i, c) over all channels, summed in f64.
template <typename Sample>
void MixChannels(int64_t count, int channels, int channel, float* out, const Sample& sample) {
  const int one = channels == 1 ? 0 : channel;
  if (one != kMeanOfChannels) {
    for (int64_t i = 0; i < count; ++i) out[i] = sample(i, one);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int c = 0; c < channels; ++c) sum += static_cast<double>(sample(i, c));
    out[i] = static_cast<float>(sum / channels);
  }
}

}  // namespace ridge
