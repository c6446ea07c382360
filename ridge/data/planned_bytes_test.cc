// The law: what the plan counts for data and their pipelines is what they take, within 3 %.
#include <malloc.h>

#include <filesystem>
#include <random>

#include "ridge/data/batch_loader.h"
#include "ridge/data/image/encode.h"
#include "ridge/data/npz.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

// Of the C library's allocator; 0 where another one is in its place.
int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

class PlannedBytesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (HeapBytes() == 0) GTEST_SKIP() << "the allocator does not tell its bytes";
  }

  // The heap that a source holds, over what it says.
  double TakenOverPlanned(const std::string& spec, int64_t least) {
    const int64_t before = HeapBytes();
    const auto splits = OpenData(spec);
    EXPECT_TRUE(splits.ok()) << splits.status().message();
    const int64_t taken = HeapBytes() - before, planned = splits->resident_bytes();
    EXPECT_GT(planned, least) << "large enough for its list of fields not to count";
    return static_cast<double>(taken) / static_cast<double>(planned);
  }

  TempFolder folder_;
};

TEST_F(PlannedBytesTest, ArraysTakeTheirElements) {
  Tensor x(TensorType{DType::kF32, {40'000, 50}}), y(TensorType{DType::kI64, {40'000}});
  ASSERT_TRUE(WriteNpz(folder_.File("a.npz"), {{"x", x}, {"y", y}}).ok());
  EXPECT_NEAR(TakenOverPlanned("npz:" + folder_.File("a.npz"), 8'000'000), 1, 0.03);
}

TEST_F(PlannedBytesTest, TablesTakeTheirFeatures) {
  std::string text = "a,b,c,colour,label\n";
  std::mt19937 random(1);
  for (int i = 0; i < 60'000; ++i) {
    for (int c = 0; c < 3; ++c) text += std::to_string(random() % 100'000) + ",";
    text += random() % 2 == 0 ? "red,x\n" : "blue,y\n";
  }
  folder_.Write("t.csv", text);
  EXPECT_NEAR(TakenOverPlanned("csv:" + folder_.File("t.csv"), 1'000'000), 1, 0.03);
}

TEST_F(PlannedBytesTest, TextsTakeTheirTokens) {
  std::filesystem::create_directories(folder_.File("texts"));
  std::string text;
  for (int i = 0; i < 60'000; ++i)
    text += "a line of some words, number " + std::to_string(i) + "\n";
  folder_.Write("texts/a.txt", text);
  folder_.Write("texts/b.txt", text);
  EXPECT_NEAR(TakenOverPlanned("text:" + folder_.File("texts") + ",length=32", 4'000'000), 1, 0.03);
}

// The buffers of workers, which decode pictures of 2000x3000.
TEST_F(PlannedBytesTest, WorkersTakeTheirBuffers) {
  std::filesystem::create_directories(folder_.File("pictures/all"));
  const std::string png = EncodePng(RgbPicture::Filled({2000, 3000}, 99));
  for (int i = 0; i < 6; ++i) folder_.Write("pictures/all/" + std::to_string(i) + ".png", png);
  const auto splits = OpenData("images:" + folder_.File("pictures") + ",size=32");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const BatchSpec spec = {{{"image", {DType::kF32, {3, 32, 32}}}}};
  std::vector<float> slot(2 * 3 * 32 * 32);
  for (const int workers : {1, 2, 4}) {
    LoaderOptions options;
    options.batch = 2;
    options.epochs = 1;
    options.workers = workers;
    const int64_t before = HeapBytes();
    const auto loader = BatchLoader::Create(splits->train, spec, options, {{{slot.data()}}});
    ASSERT_TRUE(loader.ok()) << loader.status().message();
    for (auto batch = (*loader)->Next(); !batch->end(); batch = (*loader)->Next())
      (*loader)->Release(batch->slot);
    const auto taken = static_cast<double>(HeapBytes() - before);
    const auto planned =
        static_cast<double>(BatchLoader::Plan(*splits->train, spec, options).own_bytes);
    EXPECT_GT(planned, 18e6 * workers);
    EXPECT_NEAR(taken / planned, 1, 0.03) << workers;
  }
}

}  // namespace
}  // namespace ridge
