#include "ridge/data/sound/sound_file.h"

#include <algorithm>

#include "ridge/data/sound/flac.h"
#include "ridge/data/sound/wav.h"

namespace ridge {

const char* SoundFormatName(SoundFormat format) {
  return format == SoundFormat::kWav ? "WAV" : "FLAC";
}

Result<SoundHeader> ReadSoundHeader(const SoundBytes& file) {
  char start[12];
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, file.ReadAt(0, start));
  const std::span<const char> bytes(start, static_cast<size_t>(got));
  if (bytes.empty()) return Status(ErrorCode::kInvalidData, "is empty");
  if (BeginsAsWav(bytes)) return ReadWavHeader(file);
  if (BeginsAsFlac(bytes)) return ReadFlacHeader(file);
  return Status(ErrorCode::kInvalidData, "is no WAV or FLAC file");
}

Status ReadSoundFrames(const SoundBytes& file, const SoundHeader& header, int64_t first,
                       int64_t count, int channel, std::span<char> scratch, float* out) {
  RIDGE_CHECK(first >= 0 && first + count <= header.frames, "frames of the file");
  if (header.format == SoundFormat::kFlac)
    return ReadFlacFrames(file, header, first, count, channel, out);
  return ReadWavFrames(file, header, first, count, channel,
                       scratch.first(static_cast<size_t>(kSoundScratchBytes)), out);
}

}  // namespace ridge
