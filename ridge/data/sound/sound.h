// SoundReader: sound files to one length and form, whatever holds the bytes.
//
// A source shows it the header of each file when it opens (Admit), so that the memory that reading
// takes is known before the run.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "ridge/core/status.h"
#include "ridge/data/image/transforms/random_box.h"
#include "ridge/data/sound/mel.h"
#include "ridge/data/sound/resample.h"
#include "ridge/data/sound/sound_file.h"
#include "ridge/data/sound/sound_target.h"

namespace ridge {

inline constexpr const char* kSoundChanged = "has changed since the data was opened";

class SoundReader {
 public:
  explicit SoundReader(const SoundTarget& target);

  const SoundTarget& target() const { return target_; }

  // Such a sound may be read from now on.  Fails with kInvalidData for what cannot become the
  // target; the message is the bare reason.
  Status Admit(const SoundHeader& header);

  int64_t scratch_bytes() const;
  int64_t heap_bytes() const { return heap_bytes_; }  // of a decoder, at most
  int64_t bytes() const;                              // that it keeps

  // `out`: target().type().bytes().  Takes the beginning of a longer sound, with `cut` a part at a
  // random place; `part` counts as all of the file.  Fails with kInvalidData; the message is the
  // bare reason.  Thread-safe, each thread with a scratch of its own.  REQUIRES: scratch_bytes() in
  // `scratch`.
  Status Read(const SoundBytes& file, std::span<char> scratch, float* out,
              const CropDraw* cut = nullptr, const SoundPart& part = {}) const;

 private:
  struct Window {
    FrameRange output;  // of the sound at the target's rate
    FrameRange input;   // of the file, whole frames that exist
  };
  Window WindowOf(const SoundHeader& header, const Resampler& resampler, const CropDraw* cut) const;
  Status ReadSamples(const SoundBytes& file, const SoundHeader& header, const SoundPart& part,
                     std::span<char> scratch, float* samples, const CropDraw* cut) const;

  SoundTarget target_;
  std::optional<LogMel> mel_;
  std::map<int64_t, Resampler> resamplers_;  // by the rate of the file
  int64_t most_input_ = 0, heap_bytes_ = 0;  // of all admitted
};

}  // namespace ridge
