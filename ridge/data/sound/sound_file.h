// Sound files: WAV (PCM of 8 to 32 bits, floats of 32 and 64) and FLAC, to floats in [-1, 1].
//
// A frame is one sample of each channel.  Any part of a file is read without the rest of it.
#pragma once
#include <cstdint>
#include <span>

#include "ridge/core/status.h"
#include "ridge/data/sound/sound_bytes.h"
#include "ridge/data/sound/sound_target.h"

namespace ridge {

enum class SoundFormat { kWav, kFlac };
const char* SoundFormatName(SoundFormat format);  // "WAV"

struct SoundHeader {
  SoundFormat format = SoundFormat::kWav;
  int64_t rate = 0;    // frames a second, 1 to kMostSoundRate
  int channels = 0;    // 1 to kMostSoundChannels
  int64_t frames = 0;  // at least 1
  int bits = 0;        // of a sample
  bool is_float = false;
  int64_t data_offset = 0;    // of WAV: the first frame
  int64_t decoder_bytes = 0;  // what the library allocates while it reads, at most

  int64_t frame_bytes() const { return channels * (bits / 8); }  // of WAV
  bool operator==(const SoundHeader&) const = default;
};

// Frames of a file that count as a sound of their own.
struct SoundPart {
  int64_t first = 0;
  int64_t count = 0;  // 0: all
};

// Fails with kInvalidData; the message is the bare reason, with the place in the file.
Result<SoundHeader> ReadSoundHeader(const SoundBytes& file);

inline constexpr int64_t kSoundScratchBytes = 64 << 10;

// Writes frames `first` to `first + count` to `out`, one float each: the mean of the channels, or
// `channel`, counted from 0.  Integers of n bits are divided by 2^(n-1).  Fails with kInvalidData,
// also for samples that are not finite; the message is the bare reason, with the place.
// REQUIRES: 0 <= first, first + count <= header.frames, channel < header.channels;
// kSoundScratchBytes in `scratch`.
Status ReadSoundFrames(const SoundBytes& file, const SoundHeader& header, int64_t first,
                       int64_t count, int channel, std::span<char> scratch, float* out);

}  // namespace ridge
