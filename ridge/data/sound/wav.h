// WAV: RIFF chunks, of which `fmt ` says the form of the samples and `data` holds them.
//
// Source: Microsoft, "Multiple channel audio data and WAVE files", 2007 (the extensible header).
#pragma once
#include "ridge/data/sound/sound_file.h"

namespace ridge {

bool BeginsAsWav(std::span<const char> start);  // 12 bytes

// As ReadSoundHeader and ReadSoundFrames.
Result<SoundHeader> ReadWavHeader(const SoundBytes& file);
Status ReadWavFrames(const SoundBytes& file, const SoundHeader& header, int64_t first,
                     int64_t count, int channel, std::span<char> scratch, float* out);

}  // namespace ridge
