#include "ridge/data/sound/sound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "ridge/core/files.h"
#include "ridge/data/npz.h"
#include "ridge/data/sound/sound_transforms.h"

namespace ridge {
namespace {

std::string Path(const std::string& name) {
  return std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/sounds/" + name;
}
std::string Golden(const std::string& name) { return *ReadFile(Path(name)); }

SoundInMemory Bytes(const std::string& file) { return SoundInMemory({file.data(), file.size()}); }

struct Expected {
  Dims dims;
  std::vector<float> values;
};

Expected ExpectedOf(const std::string& file, const std::string& name) {
  const auto arrays = ReadNpz(Path(file));
  RIDGE_CHECK(arrays.ok(), arrays.status().message());
  for (const auto& [found, tensor] : *arrays) {
    if (found != name) continue;
    const float* data = tensor.as<float>();
    return {tensor.type().dims, {data, data + tensor.type().elements()}};
  }
  ADD_FAILURE() << file << " has no " << name;
  return {};
}

std::vector<float> Frames(const std::string& file, int64_t first, int64_t count, int channel) {
  const auto header = ReadSoundHeader(Bytes(file));
  EXPECT_TRUE(header.ok()) << header.status().message();
  std::vector<char> scratch(kSoundScratchBytes);
  std::vector<float> out(static_cast<size_t>(count));
  const Status status =
      ReadSoundFrames(Bytes(file), *header, first, count, channel, scratch, out.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return out;
}

// The sound as the target wants it.
Result<std::vector<float>> Make(const std::string& file, const SoundTarget& target,
                                const CropDraw* cut = nullptr) {
  SoundReader reader(target);
  RIDGE_ASSIGN_OR_RETURN(const SoundHeader header, ReadSoundHeader(Bytes(file)));
  RIDGE_RETURN_IF_ERROR(reader.Admit(header));
  std::vector<char> scratch(static_cast<size_t>(reader.scratch_bytes()));
  std::vector<float> out(static_cast<size_t>(target.type().elements()));
  RIDGE_RETURN_IF_ERROR(reader.Read(Bytes(file), scratch, out.data(), cut));
  return out;
}

SoundTarget Wave(int64_t rate, int64_t samples) {
  SoundTarget target;
  target.rate = rate;
  target.samples = samples;
  return target;
}

double Furthest(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double furthest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    furthest = std::max(furthest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return furthest;
}

// ---- files

TEST(SoundFile, EveryCodeHasTheSamplesThatLibsndfileReads) {
  for (const std::string name : {"u8.wav", "s16.wav", "s24.wav", "s32.wav", "f32.wav", "f64.wav",
                                 "extensible.wav", "odd.wav", "s16.flac", "s24.flac"}) {
    const std::string file = Golden(name);
    std::string key = name;
    std::replace(key.begin(), key.end(), '.', '_');
    const Expected expected = ExpectedOf("codes.npz", key);
    const int64_t frames = expected.dims[0];
    const auto left = Frames(file, 0, frames, 0), right = Frames(file, 0, frames, 1);
    const auto mean = Frames(file, 0, frames, kMeanOfChannels);
    for (size_t i = 0; i < left.size(); ++i) {
      ASSERT_EQ(left[i], expected.values[2 * i]) << name << " frame " << i;
      ASSERT_EQ(right[i], expected.values[2 * i + 1]) << name << " frame " << i;
      const double sum = static_cast<double>(left[i]) + static_cast<double>(right[i]);
      ASSERT_EQ(mean[i], static_cast<float>(sum / 2)) << name << " frame " << i;
    }
  }
}

TEST(SoundFile, AnyPartHasTheSamplesOfTheWhole) {
  for (const std::string name : {"tone.wav", "tone44.flac"}) {
    const std::string file = Golden(name);
    const int64_t frames = ReadSoundHeader(Bytes(file))->frames;
    const auto whole = Frames(file, 0, frames, 0);
    for (const auto& [first, count] :
         {std::pair<int64_t, int64_t>{0, 1}, {1, 4095}, {4095, 2}, {5000, 3000}, {frames - 1, 1}}) {
      const auto part = Frames(file, first, count, 0);
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + first, part.size() * sizeof(float)), 0)
          << name << " " << first;
    }
  }
}

TEST(SoundFile, HeadersSayWhatFilesHold) {
  const auto flac = ReadSoundHeader(Bytes(Golden("tone44.flac")));
  EXPECT_EQ(flac->rate, 44100);
  EXPECT_EQ(flac->channels, 1);
  EXPECT_EQ(flac->frames, 13230);
  EXPECT_EQ(flac->bits, 16);
  const auto wav = ReadSoundHeader(Bytes(Golden("extensible.wav")));
  EXPECT_EQ(wav->rate, 16000);
  EXPECT_EQ(wav->channels, 2);
  EXPECT_EQ(wav->frames, 200);
  EXPECT_EQ(wav->bits, 24);
}

// ---- what is wrong with files

void Put(std::string& file, size_t at, uint32_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
}

std::string ErrorOf(const std::string& file) {
  const auto made = Make(file, Wave(16000, 100));
  return made.ok() ? "ok" : made.status().message();
}

TEST(BadSound, HeadersAreRefusedWithTheirPlace) {
  const std::string good = Golden("s16.wav");  // fmt at 12, data at 36, 800 bytes
  const auto with = [&](size_t at, uint32_t value, size_t bytes) {
    std::string bad = good;
    Put(bad, at, value, bytes);
    return ErrorOf(bad);
  };
  EXPECT_EQ(ErrorOf(""), "is empty");
  EXPECT_EQ(ErrorOf("RIFF"), "is no WAV or FLAC file");
  EXPECT_EQ(ErrorOf(good.substr(0, 12)), "has no fmt chunk before it ends at byte 12");
  EXPECT_EQ(ErrorOf(good.substr(0, 36)), "has no data chunk before it ends at byte 36");
  EXPECT_EQ(ErrorOf(good.substr(0, 30)),
            "chunk 'fmt ' at byte 12 has 16 bytes, and 10 follow: the file is cut off");
  EXPECT_EQ(ErrorOf(good.substr(0, 500)),
            "chunk 'data' at byte 36 has 800 bytes, and 456 follow: the file is cut off");
  EXPECT_EQ(with(40, 0x7FFFFFFF, 4),
            "chunk 'data' at byte 36 has 2147483647 bytes, and 800 follow: the file is cut off");
  EXPECT_EQ(with(16, 4, 4), "its fmt chunk at byte 12 has 4 bytes, 16 are needed");
  EXPECT_EQ(with(40, 3, 4), "its data chunk at byte 36 holds no sample");
  EXPECT_EQ(with(12, 0x6B6E756A, 4), "has no fmt chunk before its data chunk at byte 36");
  EXPECT_EQ(with(20, 7, 2),
            "its fmt chunk at byte 12 says format 7; PCM (1) and floats (3) are read");
  EXPECT_EQ(with(22, 0, 2), "its fmt chunk at byte 12 says 0 channels, at most 64 are read");
  EXPECT_EQ(with(24, 0, 4),
            "its fmt chunk at byte 12 says 0 samples a second, 1 to 768000 are read");
  EXPECT_EQ(with(32, 3, 2), "its fmt chunk at byte 12 says 3 bytes for 2 samples of 16 bits");
  EXPECT_EQ(with(34, 12, 2),
            "its fmt chunk at byte 12 says 12 bits a sample; 8, 16, 24 and 32 are read");
  EXPECT_EQ(with(40, 0xFFFFFFFF, 4), "ok");  // a writer into a pipe
}

TEST(BadSound, SamplesThatAreNoNumbersAreRefusedWithTheirPlace) {
  std::string file = Golden("f32.wav");
  const int64_t at = ReadSoundHeader(Bytes(file))->data_offset;
  Put(file, static_cast<size_t>(at) + 8 * 7 + 4, 0x7FC00000, 4);
  EXPECT_EQ(ErrorOf(file), "sample 7 at byte " + std::to_string(at + 56) + " is NaN");
  Put(file, static_cast<size_t>(at) + 8 * 3, 0x7F800000, 4);
  EXPECT_EQ(ErrorOf(file), "sample 3 at byte " + std::to_string(at + 24) + " is infinite");
}

TEST(BadSound, DamagedFlacIsRefused) {
  const std::string good = Golden("tone44.flac");
  const auto error = [](const std::string& file) {
    const auto made = Make(file, Wave(44100, 13230));
    return made.ok() ? "ok" : made.status().message();
  };
  EXPECT_EQ(error(good), "ok");
  EXPECT_EQ(error(good.substr(0, 20)), "ends at byte 20, inside its FLAC header");
  EXPECT_EQ(error(good.substr(0, 15000)),
            "its FLAC data is damaged before byte 15000, at sample 8192 or later: a block does not "
            "end where the next one begins");
  std::string bad = good;
  bad[9000] ^= 0x55;
  EXPECT_TRUE(error(bad).starts_with("its FLAC data is damaged before byte ")) << error(bad);
  bad = good;
  bad[18] = bad[19] = 0;
  bad[20] &= 0x0F;
  EXPECT_EQ(error(bad), "its FLAC header at byte 18 says 0 samples a second, 1 to 768000 are read");
  bad = good;
  bad[4] = 1;
  EXPECT_EQ(error(bad), "its first FLAC block at byte 4 is no STREAMINFO");
}

TEST(BadSound, AChannelThatIsNotThereIsRefused) {
  SoundTarget target = Wave(16000, 100);
  target.channel = 1;
  EXPECT_EQ(Make(Golden("tone.wav"), target).status().message(),
            "has 1 channel, and channel 1 is asked for, counted from 0");
  EXPECT_TRUE(Make(Golden("s16.wav"), target).ok());
}

// ---- resampling

TEST(Resampler, HasTorchaudiosValues) {
  for (const auto& [file, from, to] : {std::tuple<std::string, int, int>{"tone.wav", 16000, 8000},
                                       {"tone.wav", 16000, 11025},
                                       {"tone.wav", 16000, 22050},
                                       {"tone44.flac", 44100, 16000}}) {
    const std::string name = "resample_" + std::to_string(from) + "_" + std::to_string(to);
    const Expected expected = ExpectedOf("expected.npz", name);
    const auto made = Make(Golden(file), Wave(to, expected.dims[0]));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LT(Furthest(*made, expected.values), 1e-6) << name;  // sums of 16 to 40 f32 products
  }
}

TEST(Resampler, WeightsThatAreNotKeptAreTheSame) {
  const Resampler kept(44100, 16000, 1 << 20), computed(44100, 16000, 0);
  EXPECT_GT(kept.bytes(), 0);
  EXPECT_EQ(computed.bytes(), 0);
  std::vector<float> in(3000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(0.1F * static_cast<float>(i * i % 97));
  const FrameRange output{0, kept.OutputCount(3000)};
  std::vector<float> a(static_cast<size_t>(output.count())), b(a.size());
  kept.Run(in.data(), {0, 3000}, output, a.data());
  computed.Run(in.data(), {0, 3000}, output, b.data());
  EXPECT_EQ(a, b);
}

TEST(SoundReader, APartHasTheSamplesOfTheWholeResampledSound) {
  for (const std::string name : {"tone.wav", "tone44.flac"}) {
    const std::string file = Golden(name);
    const auto whole = *Make(file, Wave(11025, 12000));
    const auto header = *ReadSoundHeader(Bytes(file));
    const int64_t all = Resampler(header.rate, 11025, 0).OutputCount(header.frames);
    std::set<size_t> places;
    for (int64_t sample = 0; sample < 20; ++sample) {
      CropDraw cut;
      cut.key = {7, 8, 9};
      cut.sample = sample;
      const auto part = *Make(file, Wave(11025, 500), &cut);
      const auto found = std::search(whole.begin(), whole.begin() + all, part.begin(), part.end());
      ASSERT_NE(found, whole.begin() + all) << name << " " << sample;
      places.insert(static_cast<size_t>(found - whole.begin()));
    }
    EXPECT_GT(places.size(), 15U);
  }
}

TEST(SoundReader, ShorterSoundsAreFollowedByZeros) {
  const auto made = *Make(Golden("s16.wav"), Wave(16000, 300));
  EXPECT_NE(made[199], 0);
  for (size_t i = 200; i < 300; ++i) EXPECT_EQ(made[i], 0);
}

// ---- spectra

TEST(RealFft, HasThePowerOfTheSumThatDefinesIt) {
  for (const int64_t n : {2, 3, 4, 5, 6, 7, 9, 22, 30, 49, 64, 97, 120, 400, 486, 512}) {
    const RealFft fft(n);
    std::vector<double> signals(static_cast<size_t>(n * kFftLanes));
    for (size_t i = 0; i < signals.size(); ++i)
      signals[i] = std::sin(static_cast<double>(i * i % 1013));
    std::vector<double> scratch(static_cast<size_t>(fft.scratch_doubles()));
    std::vector<double> power(static_cast<size_t>(fft.bins() * kFftLanes));
    fft.Power(signals.data(), scratch.data(), power.data());
    for (int64_t lane = 0; lane < kFftLanes; ++lane) {
      for (int64_t k = 0; k < fft.bins(); ++k) {
        double re = 0, im = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double x = signals[static_cast<size_t>(i * kFftLanes + lane)];
          const double angle =
              2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
          re += x * std::cos(angle);
          im -= x * std::sin(angle);
        }
        EXPECT_NEAR(power[static_cast<size_t>(k * kFftLanes + lane)], re * re + im * im,
                    1e-12 * static_cast<double>(n * n))
            << "length " << n << " bin " << k << " lane " << lane;
      }
    }
  }
}

TEST(LogMel, HasTorchaudiosValues) {
  const auto check = [](const std::string& name, const MelSettings& mel) {
    const Expected expected = ExpectedOf("expected.npz", name);
    SoundTarget target = Wave(16000, 8000);
    target.mel = mel;
    ASSERT_EQ(target.type().dims, expected.dims) << name;
    EXPECT_LE(Furthest(*Make(Golden("tone.wav"), target), expected.values), 1e-5) << name;
  };
  MelSettings mel;
  check("db", mel);
  mel.scale = MelScale::kSlaney;
  check("slaney", mel);
  check("log", {512, 400, 200, 40, 60, 7600, MelScale::kHtk, MelLevel::kLog});
}

TEST(LogMel, HasWhispersValues) {
  for (const int64_t mels : {80, 128}) {
    const Expected expected = ExpectedOf("expected.npz", "whisper" + std::to_string(mels));
    SoundTarget target = Wave(16000, 16000);
    target.mel = {400, 400, 160, mels, 0, 8000, MelScale::kSlaney, MelLevel::kWhisper};
    ASSERT_EQ(target.type().dims, expected.dims);
    EXPECT_LE(Furthest(*Make(Golden("tone.wav"), target), expected.values), 1e-6) << mels;
  }
}

TEST(LogMel, RefusesNumbersThatDoNotFit) {
  const auto error = [](const MelSettings& mel, int64_t samples) {
    return CheckMel(mel, 16000, samples).message();
  };
  MelSettings mel;
  EXPECT_TRUE(CheckMel(mel, 16000, 201).ok());
  EXPECT_EQ(error(mel, 200), "200 samples are too few for frames of 400");
  mel.high = 9000;
  EXPECT_EQ(error(mel, 16000),
            "frequencies from 0 to 9000 Hz; they must rise, up to half the rate, 8000");
  mel = {};
  mel.window = 500;
  EXPECT_EQ(error(mel, 16000), "window is 500; it must be 1 to fft, 400");
}

// ---- transforms

TEST(SoundAugmentation, MasksAreMeansOfNeighboursAndDependOnSeedEpochAndSample) {
  const Dims dims = {8, 30};
  std::vector<float> values(240);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto masked = [&](const std::string& text, uint64_t seed, int64_t epoch, int64_t sample) {
    std::vector<float> changed = values;
    SoundAugmentation::Parse(text, seed)->Apply(dims, epoch, sample, changed.data());
    return changed;
  };
  EXPECT_EQ(masked("timemask:9:2,freqmask:3", 1, 2, 3), masked("timemask:9:2,freqmask:3", 1, 2, 3));
  std::set<std::vector<float>> different;
  for (uint64_t seed : {1, 2}) {
    for (int64_t epoch : {0, 1}) {
      for (int64_t sample : {0, 1, 2}) different.insert(masked("timemask:25", seed, epoch, sample));
    }
  }
  EXPECT_GE(different.size(), 10U);
  for (int64_t sample = 0; sample < 50; ++sample) {
    const auto changed = masked("timemask:5", 1, 0, sample);
    int64_t columns = 0;
    for (size_t f = 0; f < 30; ++f) {
      const bool is_masked = changed[f] == 119.5F;
      columns += is_masked;
      for (size_t m = 0; m < 8; ++m)
        EXPECT_EQ(changed[m * 30 + f], is_masked ? 119.5F : values[m * 30 + f]);
    }
    EXPECT_LE(columns, 5);
  }
}

TEST(SoundAugmentation, RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::string& text) {
    const auto parsed = SoundAugmentation::Parse(text, 0);
    return parsed.ok() ? "ok" : parsed.status().message();
  };
  EXPECT_EQ(error("cut,timemask:20:2,freqmask"), "ok");
  EXPECT_EQ(error("timemask,cut"), "cut must come first, and once");
  EXPECT_EQ(error("flip"), "'flip' is none of cut, timemask[:FRAMES[:N]], freqmask[:MELS[:N]]");
  EXPECT_EQ(error("timemask:0"), "'0' must be a whole number from 1 to 100000");
}

}  // namespace
}  // namespace ridge
