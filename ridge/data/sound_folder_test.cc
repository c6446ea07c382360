#include "ridge/data/sound_folder.h"

#include <cstring>
#include <filesystem>
#include <thread>

#include "ridge/core/files.h"
#include "ridge/data/augment_sound.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

std::string Golden(const std::string& name) {
  return *ReadFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/sounds/" + name);
}

class SoundFolderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, bytes);
  }
  void PutSounds() {
    Put("long/tone.wav", Golden("tone.wav"));
    Put("long/deep/other.FLAC", Golden("tone44.flac"));
    Put("short/stereo.wav", Golden("s16.wav"));
  }
  Result<DataSplits> Open(const std::string& options = "", const DataOptions& data = {}) {
    return OpenData("audio:" + folder_.path() + options, data);
  }
  std::string Type(const std::string& options, const DataOptions& data = {}) {
    const auto splits = Open(options, data);
    if (!splits.ok()) return splits.status().message();
    const Field& field = splits->train->fields()[0];
    return field.name + " " + TypeToString(field.type);
  }
  std::string Error(const std::string& options = "") {
    std::string text = Message(Open(options));
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }

  TempFolder folder_;
};

std::vector<float> Sample(const Source& source, int64_t index) {
  std::vector<float> values(static_cast<size_t>(source.fields()[0].type.elements()));
  const Status status = source.ReadOne(index, 0, values.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

TEST_F(SoundFolderTest, ClassesAreFoldersAndTheLongestSoundSaysTheLength) {
  PutSounds();
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"long", "short"}));
  EXPECT_EQ(splits->sizes,
            (std::vector<ModelSize>{
                {"classes", 2}, {"image", 80}, {"width", 50}, {"channels", 1}, {"inputs", 4000}}));
  EXPECT_EQ(splits->preprocessing->sounds->samples, 8000);
  EXPECT_EQ(Type(""), "features f32[80,50]");
  EXPECT_EQ(Type(",seconds=0.2"), "features f32[80,20]");
  EXPECT_EQ(Type(",features=logmel,fft=512,hop=100,mels=40"), "features f32[40,81]");
  EXPECT_EQ(Type(",features=wave,rate=8000"), "audio f32[4000]");
}

TEST_F(SoundFolderTest, AModelsInputSaysMelsAndFrames) {
  PutSounds();
  DataOptions data;
  data.model_inputs = {{"input_features", {DType::kF32, {1, 128, 30}}}};
  EXPECT_EQ(Type("", data), "features f32[128,30]");
  EXPECT_EQ(Type(",features=logmel", data), "features f32[128,30]");
  EXPECT_EQ(Type(",seconds=1", data), "features f32[80,100]");
  data.model_inputs = {{"input_values", {DType::kF32, {7000}}}};
  EXPECT_EQ(Type(",features=wave", data), "audio f32[7000]");
}

TEST_F(SoundFolderTest, KeptPreprocessingIsRepeated) {
  PutSounds();
  const auto first = Open(",features=logmel,mels=20,seconds=0.25,channel=0,normalize=3:2");
  ASSERT_TRUE(first.ok()) << first.status().message();
  DataOptions data;
  data.preprocessing = first->preprocessing;
  const auto again = Open("", data);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again->preprocessing, *first->preprocessing);
  EXPECT_EQ(Sample(*again->train, 0), Sample(*first->train, 0));
  const auto plain = Open(",normalize=none", data);
  EXPECT_NEAR(Sample(*plain->train, 0)[5], 2 * Sample(*first->train, 0)[5] + 3, 1e-5);
}

TEST_F(SoundFolderTest, ThreadsReadTheSameBytes) {
  PutSounds();
  const auto splits = Open(",seconds=0.3");
  const Source& source = *splits->train;
  std::vector<std::vector<float>> expected;
  for (int64_t i = 0; i < source.size(); ++i) expected.push_back(Sample(source, i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 12; ++i) {
        const int64_t index = (i + t) % source.size();
        EXPECT_EQ(Sample(source, index), expected[static_cast<size_t>(index)]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(SoundFolderTest, CutsAreFunctionsOfSeedEpochAndSample) {
  PutSounds();
  const auto splits = Open(",seconds=0.1,features=wave");
  ASSERT_TRUE(HoldsSounds(*splits->train));
  const auto read = [&](uint64_t seed, int64_t epoch, int64_t index) {
    const auto augmented = AugmentSounds(splits->train, *SoundAugmentation::Parse("cut", seed));
    std::vector<char> scratch(static_cast<size_t>((*augmented)->scratch_bytes()));
    std::vector<float> values(1600);
    EXPECT_TRUE((*augmented)->Read({index, epoch}, 0, scratch, values.data()).ok());
    return values;
  };
  EXPECT_EQ(read(1, 2, 0), read(1, 2, 0));
  EXPECT_NE(read(1, 2, 0), read(1, 3, 0));
  EXPECT_NE(read(1, 2, 0), read(2, 2, 0));
  EXPECT_EQ(read(1, 2, 2), Sample(*splits->train, 2));  // shorter than a part
  EXPECT_EQ(
      Message(AugmentSounds(splits->train, *SoundAugmentation::Parse("timemask", 1))),
      splits->train->name() + ": timemask and freqmask need a spectrogram; 'audio' is f32[1600]");
}

TEST_F(SoundFolderTest, BadFilesAreNamedAndSkipped) {
  PutSounds();
  Put("short/a.wav", "RIFF");
  EXPECT_EQ(Error(), "DIR/short/a.wav: is no WAV or FLAC file");
  DataOptions data;
  data.bad_records = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:1"));
  const auto splits = Open("", data);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_EQ(data.bad_records->List().size(), 1U);
  Put("short/stereo.wav", "RIFF");
  EXPECT_EQ(splits->train->ReadOne(2, 0, nullptr).message(),
            folder_.path() + "/short/stereo.wav: has changed since the data was opened");
}

TEST_F(SoundFolderTest, RefusesFoldersWithoutSounds) {
  EXPECT_EQ(Error(), "audio:DIR: DIR holds no folders; each class needs one: DIR/CLASS/sound.wav");
  Put("a/text.txt", "");
  EXPECT_EQ(Error(), "audio:DIR: DIR/a holds no sound (.wav, .flac)");
}

}  // namespace
}  // namespace ridge
