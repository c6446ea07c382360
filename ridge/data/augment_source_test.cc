#include "ridge/data/augment_source.h"

#include <cstring>
#include <filesystem>
#include <map>

#include "ridge/core/files.h"
#include "ridge/data/batch_loader.h"
#include "ridge/data/image/decode.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

using Pixels = std::vector<uint8_t>;

constexpr int64_t kSamples = 13;
constexpr const char* kAll =
    "rrc:0.2,flip,crop:3,jitter:0.4:0.4:0.4:0.1,rotate:20,blur,grey,randaugment,erase";

std::string Golden(const std::string& name) {
  return *ReadFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/pictures/" + name);
}

// Pictures u8[12,10,3] in memory, whose labels are their numbers.
SourcePtr MemoryPictures(Dims dims = {12, 10, 3}) {
  dims.insert(dims.begin(), kSamples);
  Tensor images(TensorType{DType::kU8, dims}), labels(TensorType{DType::kI64, {kSamples}});
  for (int64_t i = 0; i < images.type().elements(); ++i)
    images.as_mutable<uint8_t>()[i] = static_cast<uint8_t>(i * i / 7 + i);
  for (int64_t i = 0; i < kSamples; ++i) labels.as_mutable<int64_t>()[i] = i;
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("memory", std::move(fields));
}

SourcePtr Augmented(const SourcePtr& source, const std::string& text, uint64_t seed = 7) {
  auto made = AugmentSource::Create(source, *Augmentation::Parse(text, seed));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

class AugmentSourceTest : public testing::Test {
 protected:
  AugmentSourceTest() {
    for (const char* name : {"420.jpg", "cmyk.jpg", "grey.jpg", "progressive.jpg", "alpha.webp",
                             "2-8-interlaced.png", "0-16.png", "dot.jpg"}) {
      std::filesystem::create_directories(folder_.File("all"));
      folder_.Write(std::string("all/") + name, Golden(name));
    }
  }
  SourcePtr Folder(const std::string& options = ",size=20x31") {
    const auto splits = OpenData("images:" + folder_.path() + options);
    EXPECT_TRUE(splits.ok()) << splits.status().message();
    return splits->train;
  }
  TempFolder folder_;
};

// Reads with the scratch that is planned and not a byte more.
Pixels Read(const Source& source, SampleAt at) {
  constexpr size_t kGuard = 256;
  const auto bytes = static_cast<size_t>(source.scratch_bytes());
  std::vector<char> scratch(bytes + kGuard, 0x5A);
  Pixels pixels(static_cast<size_t>(source.fields()[0].type.bytes()));
  const Status status = source.Read(at, 0, {scratch.data(), bytes}, pixels.data());
  EXPECT_TRUE(status.ok()) << status.message();
  for (size_t i = bytes; i < scratch.size(); ++i) EXPECT_EQ(scratch[i], 0x5A) << i;
  return pixels;
}

// Clips whose frame f is the picture of the same number in frames[f].
SourcePtr ClipsOf(const std::vector<SourcePtr>& frames) {
  const TensorType& picture = frames[0]->fields()[0].type;
  Dims dims = {kSamples, static_cast<int64_t>(frames.size())};
  dims.insert(dims.end(), picture.dims.begin(), picture.dims.end());
  Tensor images(TensorType{DType::kU8, dims}), labels(TensorType{DType::kI64, {kSamples}});
  auto* to = images.as_mutable<uint8_t>();
  for (int64_t i = 0; i < kSamples; ++i) {
    labels.as_mutable<int64_t>()[i] = i;
    for (const SourcePtr& frame : frames) {
      EXPECT_TRUE(frame->ReadOne(i, 0, to).ok());
      to += picture.bytes();
    }
  }
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("clips", std::move(fields));
}

// ---- what is read

TEST_F(AugmentSourceTest, AllFramesOfAClipAreChangedByTheSameDraws) {
  for (const Dims& dims : {Dims{12, 10, 3}, Dims{9, 14, 1}}) {
    const std::vector<SourcePtr> frames = {MemoryPictures(dims),
                                           Augmented(MemoryPictures(dims), "rotate:90"),
                                           Augmented(MemoryPictures(dims), "vflip:1")};
    for (const char* list : {kAll, "crop:3", "mixup:0.4", "flip,cutmix:1"}) {
      const SourcePtr clips = *AugmentTraining(ClipsOf(frames), list, 7);
      for (int64_t i = 0; i < kSamples; ++i) {
        Pixels wanted;
        for (const SourcePtr& frame : frames) {
          const SourcePtr still = *AugmentTraining(ClipsOf({frame}), list, 7);
          const Pixels one = Read(*still, {i, 3});
          wanted.insert(wanted.end(), one.begin(), one.end());
        }
        ASSERT_EQ(Read(*clips, {i, 3}), wanted) << list << " " << i;
      }
    }
  }
}

TEST_F(AugmentSourceTest, ACropOfAFileIsTheBoxOfItsPixelsResized) {
  const SourcePtr source = Folder(), augmented = Augmented(source, "rrc:0.2:0.7");
  const Augmentation same = *Augmentation::Parse("rrc:0.2:0.7", 7);
  const std::string file = Golden("420.jpg");  // the third by name
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  const ImageHeader header = **ReadImageHeader(bytes, /*whole=*/true);
  Pixels rgb(static_cast<size_t>(DecodedBytes(header)));
  ASSERT_TRUE(DecodeImage(bytes, header, rgb).ok());
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    const PictureBox box = DrawCrop(same.Crop(epoch, 2), header.height, header.width);
    Pixels cut;  // the box alone, side by side
    for (int64_t y = 0; y < box.height; ++y) {
      const uint8_t* row = rgb.data() + ((box.top + y) * header.width + box.left) * 3;
      cut.insert(cut.end(), row, row + box.width * 3);
    }
    cut.resize(cut.size() + kResizeSlackBytes);
    const ResizeCall call = FitPicture({box.height, box.width}, {20, 31}, ImageFit::kStretch,
                                       ResizeFilter::kBilinear, 3);
    std::vector<char> scratch(static_cast<size_t>(ResizeScratchBytes(call)));
    Pixels expected(20 * 31 * 3);
    Resize(call, cut.data(), scratch, expected.data());
    EXPECT_EQ(Read(*augmented, {2, epoch}), expected) << epoch;
  }
}

TEST_F(AugmentSourceTest, ReadsEveryFormatInThePlannedScratch) {
  for (const char* options : {",size=20x31", ",size=64,resize=nearest", ",size=5"}) {
    const SourcePtr augmented = Augmented(Folder(options), kAll);
    for (int64_t i = 0; i < augmented->size(); ++i) {
      for (int64_t epoch = 0; epoch < 20; ++epoch) Read(*augmented, {i, epoch});
    }
  }
  const SourcePtr memory = Augmented(MemoryPictures(), kAll);
  for (int64_t epoch = 0; epoch < 20; ++epoch) Read(*memory, {3, epoch});
  const SourcePtr grey = Augmented(MemoryPictures({9, 14}), kAll);
  for (int64_t epoch = 0; epoch < 20; ++epoch) Read(*grey, {3, epoch});
}

TEST_F(AugmentSourceTest, TheSourceItselfStaysAsItIs) {
  const SourcePtr source = MemoryPictures();
  const Pixels before = Read(*source, {2});
  const SourcePtr augmented = Augmented(source, kAll);
  EXPECT_NE(Read(*augmented, {2}), before);
  EXPECT_EQ(Read(*source, {2}), before);
  EXPECT_EQ(augmented->View(2, 0), nullptr);
  int64_t label = 0;
  ASSERT_TRUE(augmented->ReadOne(11, 1, &label).ok());
  EXPECT_EQ(label, 11);
}

TEST_F(AugmentSourceTest, SamplesDifferAndEpochsDo) {
  const SourcePtr augmented = Augmented(MemoryPictures(), "crop:4");
  std::map<Pixels, int> of_sample, of_epoch;
  for (int64_t epoch = 0; epoch < 20; ++epoch) ++of_epoch[Read(*augmented, {0, epoch})];
  EXPECT_GT(of_epoch.size(), 10U);
  EXPECT_NE(Read(*augmented, {0, 1}), Read(*Augmented(MemoryPictures(), "crop:4", 8), {0, 1}));
}

TEST_F(AugmentSourceTest, ErasedPixelsAreTheMeanOfTheNormalization) {
  const auto splits = OpenData("images:" + folder_.path() + ",size=40,normalize=0.1/0.5/1:1/1/1");
  const SourcePtr augmented = Augmented(splits->train, "erase:1");
  const Pixels plain = Read(*splits->train, {0}), erased = Read(*augmented, {0});
  int changed = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == erased[i]) continue;
    ++changed;
    EXPECT_EQ(erased[i], (std::array<int, 3>{26, 128, 255}[i % 3]));
  }
  EXPECT_GT(changed, 50);
}

TEST_F(AugmentSourceTest, RefusesDataWithoutPictures) {
  const auto message = [](const SourcePtr& source) {
    return Message(AugmentSource::Create(source, *Augmentation::Parse("flip", 0)));
  };
  EXPECT_EQ(message(MemoryPictures({5, 12, 10})),
            "memory: has no pictures to augment: 'image' must be u8[H,W], u8[H,W,3], "
            "u8[3,H,W] or u8[N,H,W,3]; it "
            "is u8[5,12,10]");
  std::vector<NamedTensor> fields;
  fields.emplace_back("features", Tensor(TensorType{DType::kF32, {2, 4}}));
  fields.emplace_back("other", Tensor(TensorType{DType::kU8, {2, 4, 4}}));
  EXPECT_EQ(message(*MemorySource::Create("table", std::move(fields))),
            "table: has no pictures to augment: 'image' must be u8[H,W], u8[H,W,3], "
            "u8[3,H,W] or u8[N,H,W,3]; it is "
            "f32[4]");
}

// The same pixels with their channels last and first, [H,W,C] and [C,H,W].
SourcePtr MemoryPlanes(const Source& pictures) {
  const Dims& d = pictures.fields()[0].type.dims;
  Tensor images(TensorType{DType::kU8, {kSamples, d[2], d[0], d[1]}});
  Tensor labels(TensorType{DType::kI64, {kSamples}});
  Pixels pixels(static_cast<size_t>(d[0] * d[1] * d[2]));
  for (int64_t i = 0; i < kSamples; ++i) {
    labels.as_mutable<int64_t>()[i] = i;
    EXPECT_TRUE(pictures.ReadOne(i, 0, pixels.data()).ok());
    uint8_t* out = images.as_mutable<uint8_t>() + i * std::ssize(pixels);
    for (int64_t c = 0; c < d[2]; ++c) {
      for (int64_t p = 0; p < d[0] * d[1]; ++p)
        out[c * d[0] * d[1] + p] = pixels[static_cast<size_t>(p * d[2] + c)];
    }
  }
  std::vector<NamedTensor> fields;
  fields.emplace_back("image", std::move(images));
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create("planes", std::move(fields));
}

TEST_F(AugmentSourceTest, PicturesWithChannelsFirstBecomeTheSamePicturesInThatOrder) {
  for (const int64_t channels : {3, 1}) {
    const SourcePtr last = MemoryPictures({12, 10, channels}), first = MemoryPlanes(*last);
    for (const char* list : {kAll, "flip", "rrc", "mixup:0.2", "flip,cutmix:1"}) {
      const auto a = AugmentTraining(last, list, 5), b = AugmentTraining(first, list, 5);
      ASSERT_TRUE(a.ok() && b.ok()) << list << Message(b);
      EXPECT_EQ((*b)->fields()[0].type, (TensorType{DType::kU8, {channels, 12, 10}}));
      ASSERT_EQ((*a)->fields().size(), (*b)->fields().size());
      const SourcePtr same = MemoryPlanes(**a);
      for (int64_t i = 0; i < kSamples; ++i) {
        for (int field = 0; field < static_cast<int>((*a)->fields().size()); ++field) {
          std::vector<char> x(360), y(360);
          EXPECT_TRUE((field == 0 ? *same : **a).ReadOne(i, field, x.data()).ok());
          EXPECT_TRUE((*b)->ReadOne(i, field, y.data()).ok());
          EXPECT_EQ(x, y) << list << " sample " << i << " field " << field;
        }
      }
    }
  }
}

// ---- batches

struct Row {
  int64_t epoch = 0, label = 0;
  auto operator<=>(const Row&) const = default;
};
using Rows = std::map<Row, std::vector<float>>;

// Everything from `start` on for two epochs, by epoch and label.
Rows Load(const SourcePtr& source, LoaderOptions options) {
  const Dims& dims = source->fields()[0].type.dims;
  const TensorType image{DType::kF32, {3, dims[0], dims[1]}};
  options.epochs = 2;
  options.seed = 3;
  const BatchSpec spec = {{{"image", image}, {"label", {DType::kI64, {}}}}};
  std::vector<std::vector<float>> images(2);
  std::vector<std::vector<int64_t>> labels(2);
  std::vector<BatchSlot> slots;
  for (size_t s = 0; s < 2; ++s) {
    images[s].resize(static_cast<size_t>(options.batch * image.elements()));
    labels[s].resize(static_cast<size_t>(options.batch));
    slots.push_back({{images[s].data(), labels[s].data()}});
  }
  const auto loader = BatchLoader::Create(source, spec, options, slots);
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  Rows rows;
  while (true) {
    const auto batch = (*loader)->Next();
    EXPECT_TRUE(batch.ok()) << batch.status().message();
    if (!batch.ok() || batch->end()) return rows;
    const auto slot = static_cast<size_t>(batch->slot);
    for (int64_t row = 0; row < batch->valid_samples; ++row) {
      const auto begin = images[slot].begin() + row * image.elements();
      rows[{batch->epoch, labels[slot][static_cast<size_t>(row)]}] =
          std::vector<float>(begin, begin + image.elements());
    }
    (*loader)->Release(batch->slot);
  }
}

LoaderOptions Options(int64_t batch, int workers) {
  LoaderOptions options;
  options.batch = batch;
  options.workers = workers;
  options.drop_last = false;
  return options;
}

TEST_F(AugmentSourceTest, BatchesHaveTheSameBitsForAnyNumberOfWorkersAndAnyCut) {
  const SourcePtr augmented = Augmented(MemoryPictures(), kAll);
  const Rows expected = Load(augmented, Options(4, 0));
  EXPECT_EQ(expected.size(), 2U * kSamples);
  for (const int workers : {1, 2, 4}) {
    for (const int64_t batch : {1, 3, 4, 13})
      EXPECT_EQ(Load(augmented, Options(batch, workers)), expected) << workers << " " << batch;
  }
  for (int64_t label = 0; label < kSamples; ++label)
    EXPECT_NE(expected.at({0, label}), expected.at({1, label})) << label;
}

TEST_F(AugmentSourceTest, ResumingGivesWhatWouldHaveCome) {
  const SourcePtr augmented = Augmented(MemoryPictures(), kAll);
  const Rows all = Load(augmented, Options(3, 2));
  for (const Position start : {Position{0, 2}, {0, 4}, {0, 5}, {1, 0}, {1, 3}}) {
    LoaderOptions options = Options(3, 2);
    options.start = start;
    const Rows rest = Load(augmented, options);
    EXPECT_LT(rest.size(), all.size());
    for (const auto& [row, pixels] : rest) EXPECT_EQ(pixels, all.at(row));
  }
}

TEST_F(AugmentSourceTest, PartsOfAFolderAreCutFromTheirFiles) {
  const auto split = SplitValidation(Folder(), 0.25, /*seed=*/1);
  const SourcePtr augmented = Augmented(split->train, "rrc:0.1:0.2");
  EXPECT_TRUE(split->train->reads_crops());
  for (int64_t i = 0; i < augmented->size(); ++i) {
    SampleAt at{i, 2};
    const CropDraw crop = Augmentation::Parse("rrc:0.1:0.2", 7)->Crop(2, i);
    const Pixels plain = Read(*split->train, at);
    at.crop = &crop;
    EXPECT_EQ(Read(*augmented, {i, 2}), Read(*split->train, at));
    EXPECT_EQ(Read(*split->train, {i, 2}), plain);
  }
}

// One sample is one task, however many threads there are.
TEST_F(AugmentSourceTest, StageTimesCountEachSampleOnce) {
  for (const int workers : {0, 1, 2, 4}) {
    const SourcePtr source = Augmented(Folder(), "rrc,blur");
    BatchSpec spec;
    spec.inputs = {{"image", {DType::kF32, {3, 20, 31}}}, {"label", {DType::kI64, {}}}};
    LoaderOptions options;
    options.batch = 3;
    options.drop_last = false;
    options.epochs = 2;
    options.workers = workers;
    std::vector<float> images(3 * 3 * 20 * 31);
    std::vector<int64_t> labels(3);
    auto loader = BatchLoader::Create(source, spec, options, {{{images.data(), labels.data()}}});
    ASSERT_TRUE(loader.ok()) << loader.status().message();
    for (auto batch = (*loader)->Next(); !batch->end(); batch = (*loader)->Next())
      (*loader)->Release(batch->slot);
    const StageSeconds stages = (*loader)->stage_seconds();
    EXPECT_EQ(stages.samples, 2 * source->size()) << workers;
    for (size_t s = 0; s < kInputStages; ++s) EXPECT_GT(stages.seconds[s], 0) << s;
  }
}

}  // namespace
}  // namespace ridge
