// A sound counts as resampled whole, and a part of that is taken: of the file only the frames are
// read that the part depends on, and a part has the same samples wherever it begins.
//
// Scratch: a piece of the file; its frames; the samples; what the spectrogram needs.
#include "ridge/data/sound/sound.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/data/image/transforms/transform.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostWeightBytes = int64_t{4} << 20;  // of one resampler
constexpr size_t kMostKept = 8;                         // resamplers that keep their weights

int64_t FloatBytes(int64_t count) {
  return RoundUp(count * static_cast<int64_t>(sizeof(float)), kAlignment);
}

Status Bad(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

}  // namespace

TensorType SoundTarget::type() const {
  if (!mel) return {DType::kF32, {samples}};
  return {DType::kF32, {mel->mels, mel->frames(samples)}};
}

SoundReader::SoundReader(const SoundTarget& target) : target_(target) {
  if (target.mel) mel_.emplace(*target.mel, target.rate, target.samples);
}

Status SoundReader::Admit(const SoundHeader& header) {
  if (target_.channel >= header.channels) {
    return Bad(fmt::format("has {}, and channel {} is asked for, counted from 0",
                           FormatCountOf(header.channels, "channel"), target_.channel));
  }
  const auto found = resamplers_.find(header.rate);
  const int64_t weights = resamplers_.size() < kMostKept ? kMostWeightBytes : 0;
  const Resampler& resampler =
      found != resamplers_.end()
          ? found->second
          : resamplers_.try_emplace(header.rate, header.rate, target_.rate, weights).first->second;
  const int64_t output = std::min(target_.samples, resampler.OutputCount(header.frames));
  // Wherever a part begins: two frames more than at the beginning, by rounding.
  const int64_t input = std::min(header.frames, resampler.InputOf({0, output}).count() + 2);
  if (input > kMostSoundSamples) {
    return Bad(fmt::format("takes {} of its samples for {} seconds, at most {} are read", input,
                           target_.seconds(), kMostSoundSamples));
  }
  most_input_ = std::max(most_input_, input);
  heap_bytes_ = std::max(heap_bytes_, header.decoder_bytes);
  return Status();
}

int64_t SoundReader::scratch_bytes() const {
  const int64_t samples = mel_ ? FloatBytes(target_.samples) + mel_->scratch_bytes() : 0;
  return kSoundScratchBytes + FloatBytes(most_input_) + samples;
}

int64_t SoundReader::bytes() const {
  int64_t bytes = mel_ ? mel_->bytes() : 0;
  for (const auto& [rate, resampler] : resamplers_) bytes += resampler.bytes();
  return bytes;
}

SoundReader::Window SoundReader::WindowOf(const SoundHeader& header, const Resampler& resampler,
                                          const CropDraw* cut) const {
  const int64_t all = resampler.OutputCount(header.frames);
  const int64_t count = std::min(all, target_.samples);
  int64_t begin = 0;
  constexpr int64_t kMostPlaces = (int64_t{1} << 32) - 1;
  if (cut != nullptr && all > count) {
    begin = TransformDraws(cut->key, cut->sample).Below(std::min(all - count + 1, kMostPlaces));
  }
  Window window{{begin, begin + count}, resampler.InputOf({begin, begin + count})};
  window.input.begin = std::max<int64_t>(window.input.begin, 0);
  window.input.end = std::min(window.input.end, header.frames);
  return window;
}

Status SoundReader::ReadSamples(const SoundBytes& file, const SoundHeader& header,
                                const SoundPart& part, std::span<char> scratch, float* samples,
                                const CropDraw* cut) const {
  if (part.first + part.count > header.frames) return Bad(kSoundChanged);
  SoundHeader heard = header;
  if (part.count > 0) heard.frames = part.count;
  const auto resampler = resamplers_.find(header.rate);
  if (resampler == resamplers_.end() || target_.channel >= header.channels ||
      header.decoder_bytes > heap_bytes_)
    return Bad(kSoundChanged);
  const Window window = WindowOf(heard, resampler->second, cut);
  if (window.input.count() > most_input_) return Bad(kSoundChanged);
  auto* frames = reinterpret_cast<float*>(scratch.data() + kSoundScratchBytes);
  RIDGE_RETURN_IF_ERROR(ReadSoundFrames(file, header, part.first + window.input.begin,
                                        window.input.count(), target_.channel, scratch, frames));
  resampler->second.Run(frames, window.input, window.output, samples);
  std::fill(samples + window.output.count(), samples + target_.samples, 0.0F);
  return Status();
}

Status SoundReader::Read(const SoundBytes& file, std::span<char> scratch, float* out,
                         const CropDraw* cut, const SoundPart& part) const {
  RIDGE_ASSIGN_OR_RETURN(const SoundHeader header, ReadSoundHeader(file));
  const std::span<char> rest =
      scratch.subspan(static_cast<size_t>(kSoundScratchBytes + FloatBytes(most_input_)));
  float* samples = mel_ ? reinterpret_cast<float*>(rest.data()) : out;
  RIDGE_RETURN_IF_ERROR(ReadSamples(file, header, part, scratch, samples, cut));
  if (mel_) mel_->Run(samples, rest.subspan(static_cast<size_t>(FloatBytes(target_.samples))), out);
  if (target_.mean == 0 && target_.std == 1) return Status();
  const int64_t count = target_.type().elements();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>((static_cast<double>(out[i]) - target_.mean) / target_.std);
  }
  return Status();
}

}  // namespace ridge
