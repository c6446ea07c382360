#include "ridge/data/point_folder.h"

#include <cmath>
#include <filesystem>
#include <thread>

#include "ridge/data/augment_points.h"
#include "ridge/data/augment_source.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

// Points on a circle of the radius about (5,6,7).
std::string Circle(int64_t count, double radius) {
  std::string file = "OFF\n" + std::to_string(count) + " 0 0\n";
  for (int64_t i = 0; i < count; ++i) {
    const double angle = 6.283185307179586 * static_cast<double>(i) / static_cast<double>(count);
    file += std::to_string(5 + radius * std::cos(angle)) + " " +
            std::to_string(6 + radius * std::sin(angle)) + " 7\n";
  }
  return file;
}

class PointFolderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, bytes);
  }
  void PutClouds() {
    Put("large/a.off", Circle(300, 20));
    Put("large/deep/b.OFF", Circle(40, 30));
    Put("small/c.off", Circle(64, 1));
  }
  Result<DataSplits> Open(const std::string& options = "", const DataOptions& data = {}) {
    return OpenData("points:" + folder_.path() + options, data);
  }
  std::string Error(const std::string& options = "") {
    std::string text = Message(Open(options));
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }

  TempFolder folder_;
};

std::vector<float> SampleOf(const Source& source, SampleAt at) {
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  std::vector<float> values(static_cast<size_t>(source.fields()[0].type.elements()));
  const Status status = source.Read(at, 0, scratch, values.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

TEST_F(PointFolderTest, ClassesAreFoldersAndPointsFillTheUnitSphere) {
  PutClouds();
  const auto splits = Open(",points=50");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"large", "small"}));
  EXPECT_EQ(splits->sizes,
            (std::vector<ModelSize>{{"classes", 2}, {"points", 50}, {"inputs", 150}}));
  EXPECT_EQ(splits->train->fields()[0], (Field{"points", {DType::kF32, {50, 3}}}));
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<float> points = SampleOf(*splits->train, {i});
    double largest = 0, sum = 0;
    for (size_t k = 0; k < points.size(); k += 3) {
      largest = std::max(largest, std::hypot(static_cast<double>(points[k]), points[k + 1]));
      sum += static_cast<double>(points[k]);
    }
    EXPECT_NEAR(largest, 1, 1e-6);
    EXPECT_NEAR(sum, 0, 1e-4);
  }
  int64_t label = 0;
  EXPECT_TRUE(splits->train->ReadOne(2, 1, &label).ok());
  EXPECT_EQ(label, 1);
}

TEST_F(PointFolderTest, AModelsInputSaysHowManyPoints) {
  PutClouds();
  DataOptions data;
  EXPECT_EQ(Open("", data)->train->fields()[0].type.dims, (Dims{1024, 3}));
  data.model_inputs = {{"points", {DType::kF32, {32, 3}}}};
  EXPECT_EQ(Open("", data)->train->fields()[0].type.dims, (Dims{32, 3}));
  EXPECT_EQ(Open(",points=16", data)->train->fields()[0].type.dims, (Dims{16, 3}));
}

TEST_F(PointFolderTest, KeptPreprocessingIsRepeated) {
  PutClouds();
  const auto first = Open(",points=20,pick=farthest,normalize=none");
  ASSERT_TRUE(first.ok()) << first.status().message();
  DataOptions data;
  data.preprocessing = first->preprocessing;
  const auto again = Open("", data);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again->preprocessing, *first->preprocessing);
  EXPECT_EQ(SampleOf(*again->train, {0}), SampleOf(*first->train, {0}));
  EXPECT_NE(SampleOf(*Open(",normalize=sphere", data)->train, {0}), SampleOf(*first->train, {0}));
}

TEST_F(PointFolderTest, ThreadsReadTheSameBytes) {
  PutClouds();
  const auto splits = Open(",points=30,pick=farthest");
  const SourcePtr source = *AugmentTraining(splits->train, "draw,rotate,jitter,drop", 3);
  std::vector<std::vector<float>> expected;
  for (int64_t i = 0; i < source->size(); ++i) expected.push_back(SampleOf(*source, {i, 1}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 12; ++i) {
        const int64_t index = (i + t) % source->size();
        EXPECT_EQ(SampleOf(*source, {index, 1}), expected[static_cast<size_t>(index)]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PointFolderTest, TransformsAreFunctionsOfSeedEpochAndSample) {
  PutClouds();
  const auto splits = Open(",points=30");
  for (const char* list : {"draw", "rotate:z", "jitter", "scale", "shift", "drop"}) {
    const auto read = [&](uint64_t seed, int64_t epoch, int64_t index) {
      return SampleOf(**AugmentTraining(splits->train, list, seed), {index, epoch});
    };
    EXPECT_EQ(read(1, 2, 0), read(1, 2, 0)) << list;
    EXPECT_NE(read(1, 2, 0), read(1, 3, 0)) << list;
    EXPECT_NE(read(1, 2, 0), read(2, 2, 0)) << list;
    EXPECT_NE(read(1, 2, 0), SampleOf(*splits->train, {0})) << list;
  }
}

TEST_F(PointFolderTest, ARotationKeepsItsAxisAndDistances) {
  PutClouds();
  const auto splits = Open(",points=30");
  const std::vector<float> before = SampleOf(*splits->train, {0});
  const std::vector<float> after =
      SampleOf(**AugmentTraining(splits->train, "rotate:x:90", 1), {0});
  for (size_t i = 0; i < before.size(); i += 3) {
    EXPECT_EQ(after[i], before[i]);
    EXPECT_NEAR(std::hypot(after[i + 1], after[i + 2]), std::hypot(before[i + 1], before[i + 2]),
                1e-6);
  }
  EXPECT_NE(after, before);
}

TEST_F(PointFolderTest, WrongTransformsSayWhatIsTaken) {
  PutClouds();
  const auto error = [&](const std::string& list) {
    return Message(AugmentTraining(Open()->train, list, 0));
  };
  EXPECT_EQ(error("flip"),
            "--augment is 'flip': 'flip' is none of draw, rotate[:AXIS[:DEGREES]], "
            "jitter[:SIGMA[:MOST]], scale[:LEAST[:MOST]], shift[:MOST], drop[:MOST]");
  EXPECT_EQ(error("rotate:up"), "--augment is 'rotate:up': rotate is about x, y or z, not 'up'");
  EXPECT_EQ(error("rotate:y:y"), "--augment is 'rotate:y:y': 'y' of rotate must be from 0 to 180");
  EXPECT_EQ(error("scale:2"),
            "--augment is 'scale:2': scale is from 2 to 1.25; the first must not be larger");
  EXPECT_EQ(error("jitter,draw"), "--augment is 'jitter,draw': draw must come first, and once");
}

TEST_F(PointFolderTest, BadFilesAreNamedAndSkipped) {
  PutClouds();
  Put("small/a.ply", "ply");
  EXPECT_EQ(Error(), "DIR/small/a.ply: is no PLY, OFF or NumPy file");
  DataOptions data;
  data.bad_records = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:1"));
  const auto splits = Open("", data);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 3);
  Put("small/c.off", "OFF\n9 9 9\n");
  EXPECT_EQ(splits->train->ReadOne(2, 0, nullptr).message(),
            folder_.path() + "/small/c.off: has changed since the data was opened");
  Put("small/c.off", std::string(Circle(64, 1).size(), 'x'));
  EXPECT_EQ(splits->train->ReadOne(2, 0, nullptr).message(),
            folder_.path() + "/small/c.off: has changed since the data was opened");
}

TEST_F(PointFolderTest, WrongOptionsSayWhatIsTaken) {
  PutClouds();
  EXPECT_EQ(Error(",points=0"),
            "data 'points:DIR,points=0': points is '0'; it must be a whole number from 1 to "
            "1048576");
  EXPECT_EQ(Error(",pick=near"),
            "data 'points:DIR,pick=near': pick is 'near'; it must be even, first or farthest");
  EXPECT_EQ(Error(",size=3"),
            "data 'points:DIR,size=3': no option 'size' (it takes: points, pick, normalize)");
}

TEST_F(PointFolderTest, AFolderOfCloudsIsTakenForWhatItIs) {
  PutClouds();
  const auto splits = OpenData(folder_.path());
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->notes, (std::vector<std::string>{"data '" + folder_.path() +
                                                     "': is read as points:" + folder_.path()}));
}

}  // namespace
}  // namespace ridge
