#include "ridge/data/bad_records.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/data/batch_loader.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

BadRecordsPtr Skip(const std::string& text) {
  return std::make_shared<BadRecords>(*BadRecordsPolicy::Parse(text));
}

TEST(BadRecordsPolicy, TakesACountOrAPercentage) {
  EXPECT_FALSE(BadRecordsPolicy::Parse("fail")->skip);
  EXPECT_EQ(BadRecordsPolicy::Parse("skip:10")->Limit(5), 10);
  EXPECT_EQ(BadRecordsPolicy::Parse("skip:0.5%")->Limit(1000), 5);
  EXPECT_EQ(BadRecordsPolicy::Parse("skip:0.5%")->Limit(199), 0);
  EXPECT_EQ(BadRecordsPolicy::Parse("skip:100%")->Limit(7), 7);
  for (const char* wrong : {"", "skip", "skip:", "skip:-1", "skip:x", "skip:1.5", "skip:101%",
                            "skip:nan%", "skip:%", "Fail"}) {
    EXPECT_EQ(Message(BadRecordsPolicy::Parse(wrong)),
              "it must be fail, skip:N with a whole number, or skip:P% with a number from 0 to 100")
        << wrong;
  }
}

TEST(BadRecords, CountEachOriginOnceAndFailBeyondTheLimit) {
  const BadRecordsPtr bad = Skip("skip:2");
  EXPECT_TRUE(bad->Add("a.jpg", "a.jpg: is empty").ok());
  EXPECT_TRUE(bad->SetSamples(10).ok());
  EXPECT_TRUE(bad->Add("a.jpg", "a.jpg: is empty").ok());
  EXPECT_TRUE(bad->Add("b.jpg", "cut off").ok());
  EXPECT_EQ(bad->List(), (std::vector<BadRecord>{{"a.jpg", "is empty"}, {"b.jpg", "cut off"}}));
  const Status third = bad->Add("c.jpg", "c.jpg: is empty");
  EXPECT_EQ(third.code(), ErrorCode::kInvalidData);
  EXPECT_EQ(third.message(),
            "3 records cannot be read, --bad-records allows 2:\n  a.jpg: is empty\n  b.jpg: cut "
            "off\n  c.jpg: is empty");
  EXPECT_NE(bad->Add("d.jpg", "x").message().find("\n  and 1 more"), std::string::npos);
}

TEST(BadRecords, ThoseFoundAtOpeningCountAsSoonAsThereIsALimit) {
  const BadRecordsPtr bad = Skip("skip:10%");
  EXPECT_TRUE(bad->Add("a", "x").ok());
  EXPECT_TRUE(bad->Add("b", "x").ok());
  EXPECT_TRUE(bad->SetSamples(20).ok());
  EXPECT_EQ(bad->SetSamples(19).message().substr(0, 52),
            "2 records cannot be read, --bad-records allows 1:\n  ");
}

// ---- batches

constexpr int64_t kSamples = 11;

// Labels are the samples' numbers; those of `bad` cannot be read.
class HoleySource : public Source {
 public:
  explicit HoleySource(std::set<int64_t> bad)
      : Source("holey", {{"image", {DType::kU8, {2, 2}}}, {"label", {DType::kI64, {}}}}, kSamples),
        bad_(std::move(bad)) {}
  Status Read(SampleAt at, int field, std::span<char>, void* out) const override {
    if (field == 1) {
      std::memcpy(out, &at.index, sizeof(at.index));
      return Status();
    }
    if (bad_.contains(at.index))
      return Status(ErrorCode::kInvalidData, fmt::format("{}: is a hole", Origin(at.index)));
    std::memset(out, static_cast<int>(at.index), 4);
    return Status();
  }
  bool reads_slowly() const override { return true; }
  int64_t resident_bytes() const override { return 0; }
  std::string Origin(int64_t index) const override { return fmt::format("file {}", index); }

 private:
  const std::set<int64_t> bad_;
};

struct Loaded {
  std::vector<int64_t> labels;
  std::vector<float> pixels;  // the first of each sample, times 255
  std::vector<float> weights;
  std::string error;
  bool operator==(const Loaded&) const = default;
};

Loaded Load(const std::set<int64_t>& bad, const BadRecordsPtr& policy, int workers, int64_t batch,
            Position start = {}) {
  LoaderOptions options;
  options.batch = batch;
  options.epochs = 2;
  options.workers = workers;
  options.drop_last = false;
  options.bad_records = policy;
  options.start = start;
  const BatchSpec spec = {{{"image", {DType::kF32, {4}}},
                           {"ridge.weight", {DType::kF32, {}}},
                           {"label", {DType::kI64, {}}}}};
  const auto size = static_cast<size_t>(batch);
  std::vector<std::vector<float>> images(2, std::vector<float>(4 * size)), weights(2);
  std::vector<std::vector<int64_t>> labels(2, std::vector<int64_t>(size));
  std::vector<BatchSlot> slots;
  for (size_t s = 0; s < 2; ++s) {
    weights[s].resize(size);
    slots.push_back({{images[s].data(), weights[s].data(), labels[s].data()}});
  }
  const auto loader = BatchLoader::Create(std::make_shared<HoleySource>(bad), spec, options, slots);
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  Loaded loaded;
  while (true) {
    const auto next = (*loader)->Next();
    if (!next.ok()) loaded.error = next.status().message();
    if (!next.ok() || next->end()) return loaded;
    const auto s = static_cast<size_t>(next->slot);
    for (size_t row = 0; row < size; ++row) {
      loaded.weights.push_back(weights[s][row]);
      if (static_cast<int64_t>(row) >= next->valid_samples) continue;
      loaded.labels.push_back(labels[s][row]);
      loaded.pixels.push_back(images[s][4 * row] * 255);
    }
    (*loader)->Release(next->slot);
  }
}

TEST(BadRecordsInBatches, TheNextReadableSampleTakesTheRow) {
  const Loaded whole = Load({}, nullptr, 0, 4);
  const std::set<int64_t> bad = {3, 4, 10};
  const BadRecordsPtr skip = Skip("skip:3");
  ASSERT_TRUE(skip->SetSamples(kSamples).ok());
  const Loaded filled = Load(bad, skip, 0, 4);
  EXPECT_EQ(filled.error, "");
  ASSERT_EQ(filled.labels.size(), 2U * kSamples);
  EXPECT_EQ(filled.weights, whole.weights);
  for (size_t i = 0; i < filled.labels.size(); ++i) {
    int64_t expected = whole.labels[i];
    while (bad.contains(expected)) expected = (expected + 1) % kSamples;
    EXPECT_EQ(filled.labels[i], expected) << i;
    EXPECT_NEAR(filled.pixels[i], static_cast<float>(expected), 1e-4) << i;
  }
  EXPECT_EQ(skip->count(), 3);
}

TEST(BadRecordsInBatches, AreTheSameForAnyNumberOfWorkersAndAnyResumePoint) {
  const std::set<int64_t> bad = {0, 5, 6, 7};
  const auto load = [&](int workers, int64_t batch, Position start = {}) {
    const BadRecordsPtr skip = Skip("skip:4");
    EXPECT_TRUE(skip->SetSamples(kSamples).ok());
    return Load(bad, skip, workers, batch, start);
  };
  const Loaded expected = load(0, 3);
  EXPECT_EQ(expected.error, "");
  for (const int workers : {1, 2, 4}) EXPECT_EQ(load(workers, 3), expected) << workers;
  EXPECT_EQ(load(2, 5).labels, expected.labels);
  const Loaded rest = load(2, 3, {0, 2});
  EXPECT_EQ(rest.labels, std::vector<int64_t>(expected.labels.begin() + 6, expected.labels.end()));
}

TEST(BadRecordsInBatches, EndTheRunWhenThereAreMoreThanItBears) {
  EXPECT_EQ(Load({4}, nullptr, 2, 3).error, "file 4: is a hole");
  EXPECT_EQ(Load({4}, Skip("fail"), 2, 3).error, "file 4: is a hole");
  for (const int workers : {0, 1, 4}) {
    const BadRecordsPtr skip = Skip("skip:1");
    ASSERT_TRUE(skip->SetSamples(kSamples).ok());
    EXPECT_EQ(Load({4, 8}, skip, workers, 3).error.substr(0, 50),
              "2 records cannot be read, --bad-records allows 1:\n");
  }
}

TEST(BadRecordsInBatches, WithoutAnyReadableSampleThereIsAnError) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < kSamples; ++i) all.insert(i);
  const BadRecordsPtr skip = Skip("skip:100%");
  ASSERT_TRUE(skip->SetSamples(kSamples).ok());
  EXPECT_EQ(Load(all, skip, 2, 3).error, "holey: no sample can be read");
}

// ---- pictures

class BadPictures : public testing::Test {
 protected:
  BadPictures() {
    const std::string whole = Golden("420.jpg");
    std::filesystem::create_directories(folder_.File("cat"));
    std::filesystem::create_directories(folder_.File("dog"));
    folder_.Write("cat/a-empty.jpg", "");
    folder_.Write("cat/b-foreign.jpg", "GIF89a");
    folder_.Write("cat/c-cut.jpg", whole.substr(0, whole.size() / 2));
    folder_.Write("cat/d-huge.jpg",
                  std::string("\xFF\xD8\xFF\xC0\x00\x11\x08\xFF\xFF\xFF\xFF\x03", 12));
    folder_.Write("cat/e.jpg", whole);
    folder_.Write("dog/f.jpg", Golden("grey.jpg"));
    folder_.Write("dog/g.png", Golden("2-8.png"));
  }
  static std::string Golden(const std::string& name) {
    return *ReadFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/pictures/" +
                     name);
  }
  Result<DataSplits> Open(const BadRecordsPtr& bad) {
    DataOptions options;
    options.bad_records = bad;
    return OpenData("images:" + folder_.path() + ",size=8", options);
  }
  std::string Plain(std::string text) {
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }
  TempFolder folder_;
};

TEST_F(BadPictures, ThoseWithBadHeadersAreLeftOutAndListed) {
  EXPECT_EQ(Plain(Message(Open(nullptr))), "DIR/cat/a-empty.jpg: is empty");
  EXPECT_EQ(Plain(Message(Open(Skip("fail")))), "DIR/cat/a-empty.jpg: is empty");
  const BadRecordsPtr bad = Skip("skip:5");
  const auto splits = Open(bad);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 4);
  ASSERT_EQ(bad->count(), 3);
  EXPECT_EQ(Plain(bad->List()[1].origin), "DIR/cat/b-foreign.jpg");
  EXPECT_EQ(bad->List()[1].reason, "is no JPEG, PNG or WebP file: it begins with 47 49 46 38");
  EXPECT_EQ(splits->bad_records, bad);
}

TEST_F(BadPictures, AClassNeedsAPictureThatCanBeRead) {
  std::filesystem::remove(folder_.File("cat/e.jpg"));
  std::filesystem::remove(folder_.File("cat/c-cut.jpg"));
  const std::string message = Plain(Message(Open(Skip("skip:5"))));
  EXPECT_NE(message.find("DIR/cat holds no picture that can be read"), std::string::npos);
}

// Cut off, gone, and replaced by another picture after the folder was opened.
TEST_F(BadPictures, ThoseThatFailWhenTheyAreReadAreReplaced) {
  const BadRecordsPtr bad = Skip("skip:6");
  const auto splits = Open(bad);
  ASSERT_TRUE(splits.ok() && bad->SetSamples(splits->train->size()).ok());
  std::filesystem::remove(folder_.File("dog/f.jpg"));
  folder_.Write("cat/e.jpg", Golden("444.jpg"));
  LoaderOptions options;
  options.batch = 4;
  options.epochs = 1;
  options.workers = 3;
  options.shuffle = false;
  options.bad_records = bad;
  std::vector<float> images(4 * 192);
  std::vector<int64_t> labels(4);
  const BatchSpec spec = {{{"image", {DType::kF32, {3, 8, 8}}}, {"label", {DType::kI64, {}}}}};
  const auto loader =
      BatchLoader::Create(splits->train, spec, options, {{{images.data(), labels.data()}}});
  ASSERT_TRUE(loader.ok());
  const auto batch = (*loader)->Next();
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(labels, (std::vector<int64_t>{1, 1, 1, 1}));  // all are the last one
  for (size_t row = 1; row < 4; ++row)
    EXPECT_EQ(std::memcmp(&images[row * 192], images.data(), 192 * sizeof(float)), 0);
  std::set<std::string> reasons;
  for (const BadRecord& record : bad->List()) reasons.insert(record.reason);
  EXPECT_TRUE(reasons.contains("its JPEG data is damaged: Premature end of JPEG file"));
  EXPECT_TRUE(reasons.contains("has changed since the data was opened"));
  EXPECT_TRUE(reasons.contains("cannot be opened: No such file or directory"));
  EXPECT_EQ(bad->count(), 6);
}

}  // namespace
}  // namespace ridge
