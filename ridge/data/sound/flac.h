// FLAC, decoded by libFLAC.
#pragma once
#include "ridge/data/sound/sound_file.h"

namespace ridge {

bool BeginsAsFlac(std::span<const char> start);  // 4 bytes

// As ReadSoundHeader and ReadSoundFrames.
Result<SoundHeader> ReadFlacHeader(const SoundBytes& file);
Status ReadFlacFrames(const SoundBytes& file, const SoundHeader& header, int64_t first,
                      int64_t count, int channel, float* out);

}  // namespace ridge
