// A sound of any bytes: its header, all of its samples, a part, and a spectrogram.
#include <algorithm>
#include <vector>

#include "ridge/data/sound/sound.h"

namespace {

// Float samples of any size reach the resampler; what comes out may be infinite, but not read
// beyond its memory.
void Make(const ridge::SoundBytes& file, const ridge::SoundTarget& target) {
  const auto header = ridge::ReadSoundHeader(file);
  ridge::SoundReader reader(target);
  if (!reader.Admit(*header).ok()) return;
  std::vector<char> scratch(static_cast<size_t>(reader.scratch_bytes()));
  std::vector<float> out(static_cast<size_t>(target.type().elements()));
  ridge::CropDraw cut;
  cut.sample = file.size();
  (void)reader.Read(file, scratch, out.data());
  (void)reader.Read(file, scratch, out.data(), &cut);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::SoundInMemory file({reinterpret_cast<const char*>(data), size});
  const auto header = ridge::ReadSoundHeader(file);
  if (!header.ok()) return 0;
  RIDGE_CHECK(header->frames >= 1 && header->rate >= 1 && header->channels >= 1, "a header");
  ridge::SoundTarget target;
  target.rate = 8000;
  target.samples = 1000;
  if (header->rate / target.rate > 20) target.rate = header->rate;  // long kernels take long
  target.mel = ridge::MelSettings{64, 64, 32, 10, 0, 4000};
  Make(file, target);
  target.mel.reset();
  target.channel = 1;
  Make(file, target);
  return 0;
}
