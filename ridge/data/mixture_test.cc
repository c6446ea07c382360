// The laws: an epoch has each source's share exactly; all samples of a source come before one comes
// again; the same batches for any workers and any resume point; sources that do not fit are named.
#include "ridge/data/mixture.h"

#include <cmath>
#include <numeric>

#include "ridge/data/batch_loader.h"
#include "ridge/data/mixture_source.h"
#include "ridge/data/npz.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

// Labels first, first + 1, ...
SourcePtr Numbers(const std::string& name, int64_t samples, int64_t first) {
  Tensor labels(TensorType{DType::kI64, {samples}});
  std::iota(labels.as_mutable<int64_t>(), labels.as_mutable<int64_t>() + samples, first);
  std::vector<NamedTensor> fields;
  fields.emplace_back("label", std::move(labels));
  return *MemorySource::Create(name, std::move(fields));
}

// 30 samples 0..29 and 10 samples 100..109; an epoch of 40 has `first` of the first.
SourcePtr Mixed(int64_t first, uint64_t seed = 3) {
  return std::make_shared<MixtureSource>(
      "mixed",
      std::vector<MixturePart>{{Numbers("a", 30, 0), first}, {Numbers("b", 10, 100), 40 - first}},
      seed);
}

int64_t LabelAt(const Source& source, int64_t index, int64_t epoch) {
  int64_t label = -1;
  EXPECT_TRUE(source.Read({index, epoch}, 0, {}, &label).ok());
  return label;
}

TEST(ShareOut, GivesTheNearestCountsAndEachSourceOne) {
  EXPECT_EQ(ShareOut(40, {3, 1}), (std::vector<int64_t>{30, 10}));
  EXPECT_EQ(ShareOut(10, {1, 1, 1}), (std::vector<int64_t>{4, 3, 3}));
  EXPECT_EQ(ShareOut(10, {1e6, 1}), (std::vector<int64_t>{9, 1}));
  EXPECT_EQ(ShareOut(3, {1, 1e-9, 1e-9}), (std::vector<int64_t>{1, 1, 1}));
  for (int64_t samples = 3; samples < 200; ++samples) {
    const std::vector<double> weights = {0.5, 2, 7.25};
    const auto counts = ShareOut(samples, weights);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), samples);
    for (size_t i = 0; i < weights.size(); ++i) {
      const double share = static_cast<double>(samples) * weights[i] / 9.75;
      EXPECT_LE(std::abs(static_cast<double>(counts[i]) - share), samples < 40 ? 2 : 1) << samples;
    }
  }
}

TEST(MixtureSource, AllSamplesOfASourceComeBeforeOneComesAgain) {
  for (const int64_t first : {7, 20, 39}) {
    const SourcePtr mixed = Mixed(first);
    std::vector<int64_t> drawn(110);
    for (int64_t epoch = 0; epoch < 25; ++epoch) {
      int64_t of_first = 0;
      for (int64_t i = 0; i < mixed->size(); ++i) {
        const int64_t label = LabelAt(*mixed, i, epoch);
        ++drawn[static_cast<size_t>(label)];
        of_first += label < 100;
      }
      EXPECT_EQ(of_first, first);
      for (const auto& [begin, end] : {std::pair{0, 30}, {100, 110}}) {
        const auto [least, most] = std::minmax_element(drawn.begin() + begin, drawn.begin() + end);
        EXPECT_LE(*most - *least, 1) << "epoch " << epoch;
      }
    }
  }
}

TEST(MixtureSource, DrawsAreAFunctionOfSeedEpochAndPosition) {
  const SourcePtr mixed = Mixed(20), again = Mixed(20), other = Mixed(20, /*seed=*/4);
  std::vector<int64_t> forward, backward, epoch1, seed4;
  for (int64_t i = 0; i < 40; ++i) {
    forward.push_back(LabelAt(*mixed, i, 0));
    backward.push_back(LabelAt(*again, 39 - i, 0));
    epoch1.push_back(LabelAt(*mixed, i, 1));
    seed4.push_back(LabelAt(*other, i, 0));
  }
  EXPECT_EQ(forward, std::vector<int64_t>(backward.rbegin(), backward.rend()));
  EXPECT_NE(forward, epoch1);
  EXPECT_NE(forward, seed4);
}

// The labels of batches, from `skip` on.
std::vector<int64_t> Batches(int workers, int64_t skip) {
  LoaderOptions options;
  options.batch = 6;
  options.epochs = 4;
  options.seed = 3;
  options.workers = workers;
  options.start = {skip / 6, skip % 6};
  std::vector<Tensor> memory;
  std::vector<BatchSlot> slots;
  for (int i = 0; i < 2; ++i) {
    memory.emplace_back(TensorType{DType::kI64, {6}});
    slots.push_back({{memory.back().mutable_data()}});
  }
  const BatchSpec spec{{{"label", {DType::kI64, {}}}}};
  auto loader = BatchLoader::Create(Mixed(32), spec, options, slots);
  EXPECT_TRUE(loader.ok()) << loader.status().message();
  std::vector<int64_t> labels;
  for (;;) {
    const auto batch = (*loader)->Next();
    EXPECT_TRUE(batch.ok());
    if (!batch.ok() || batch->end()) return labels;
    const auto* values = memory[static_cast<size_t>(batch->slot)].as<int64_t>();
    labels.insert(labels.end(), values, values + 6);
    (*loader)->Release(batch->slot);
  }
}

TEST(MixtureSource, GivesTheSameBatchesForAnyWorkersAndResumePoint) {
  const std::vector<int64_t> whole = Batches(/*workers=*/0, /*skip=*/0);
  ASSERT_EQ(whole.size(), 4U * 6 * 6);
  for (const int workers : {1, 2, 4}) EXPECT_EQ(Batches(workers, 0), whole) << workers;
  for (const int64_t skip : {1, 5, 6, 13, 23}) {
    EXPECT_EQ(Batches(/*workers=*/2, skip),
              std::vector<int64_t>(whole.begin() + skip * 6, whole.end()))
        << skip;
  }
  // 32 of 40 samples of an epoch: the shares of a part of it converge to that.
  const auto of_first =
      std::count_if(whole.begin(), whole.end(), [](int64_t x) { return x < 100; });
  EXPECT_NEAR(static_cast<double>(of_first) / static_cast<double>(whole.size()), 0.8, 0.05);
}

class MixtureTest : public testing::Test {
 protected:
  Result<DataSplits> Open(std::string spec, const DataOptions& options = {}) {
    for (size_t at = 0; (at = spec.find("DIR", at)) != std::string::npos;)
      spec.replace(at, 3, folder_.path());
    return OpenData(spec, options);
  }
  std::string Error(const std::string& spec) {
    std::string text = Message(Open(spec));
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }
  void PutTable(const std::string& name, int rows, int first) {
    std::string text = "x,label\n";
    for (int i = first; i < first + rows; ++i)
      text += std::to_string(i) + ".5," + std::to_string(i % 2) + "\n";
    folder_.Write(name, text);
  }

  void PutArrays(const std::string& name, int64_t width) {
    std::vector<NamedTensor> arrays;
    arrays.emplace_back("x", Tensor(TensorType{DType::kF32, {4, width}}));
    ASSERT_TRUE(WriteNpz(folder_.File(name), arrays).ok());
  }

  TempFolder folder_;
};

TEST_F(MixtureTest, AnEpochIsAsLongAsAllSourcesAndSharedByWeights) {
  PutTable("a.csv", 10, 0);
  PutTable("b.csv", 30, 0);
  const auto splits = Open("DIR/a.csv*3,csv:DIR/b.csv,standardize=no");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 40);
  const std::string& note = splits->notes.back();
  EXPECT_NE(note.find("10 of 40 samples of an epoch; it has 30"), std::string::npos) << note;
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"inputs", 1}, {"classes", 2}}));
}

TEST_F(MixtureTest, TheFirstSourceSaysWhatIsDoneToAll) {
  PutTable("a.csv", 10, 0);
  PutTable("b.csv", 10, 1000);
  const auto splits = Open("csv:DIR/a.csv,csv:DIR/b.csv");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  float most = 0;
  for (int64_t i = 0; i < 20; ++i) {
    float x = 0;
    ASSERT_TRUE(splits->train->ReadOne(i, 0, &x).ok());
    most = std::max(most, x);
  }
  EXPECT_GT(most, 300);  // b lies far from a's mean, in a's deviations
}

TEST_F(MixtureTest, EachSourceHoldsOutItsPart) {
  PutTable("a.csv", 40, 0);
  PutTable("b.csv", 60, 0);
  DataOptions options;
  options.hold_out = 0.25;
  const auto splits = Open("csv:DIR/a.csv*5,csv:DIR/b.csv", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_TRUE(splits->held_out);
  EXPECT_EQ(splits->train->size() + splits->validation->size(), 100);
  EXPECT_EQ(splits->validation->resident_bytes(), 0);  // it lies in the training sets' memory
}

TEST_F(MixtureTest, SourcesOfOtherFieldsAreNamed) {
  PutTable("a.csv", 4, 0);
  folder_.Write("b.csv", "z,label\n1,0\n2,1\n");
  EXPECT_EQ(Error("csv:DIR/a.csv,csv:DIR/b.csv"),
            "DIR/b.csv: no column 'x', which is a feature of the training data; it has: z, label "
            "(mixed with csv:DIR/a.csv)");
  PutTable("c.csv", 4, 0);
  EXPECT_EQ(Error("csv:DIR/a.csv*0,csv:DIR/c.csv"),
            "data 'csv:DIR/a.csv': its weight is 0; it must be above 0");
  EXPECT_EQ(Error("csv:DIR/a.csv,csv:DIR/c.csv*2"), "ok");
  PutArrays("a.npz", 2);
  PutArrays("b.npz", 3);
  EXPECT_EQ(Error("DIR/a.npz,DIR/b.npz"),
            "npz:DIR/a.npz has x f32[2]; npz:DIR/b.npz has x f32[3]: sources of one mixture have "
            "the same fields");
}

bool IsCsv(const std::string& piece) { return piece.starts_with("csv:"); }

TEST(ParseMixture, CutsWhereASpecBegins) {
  const auto parts = [](const std::string& text) {
    std::string all;
    if (const auto mixture = ParseMixture(text, IsCsv)) {
      for (const auto& part : mixture->parts)
        all += "[" + part.spec + " " + std::to_string(static_cast<int>(part.weight)) + "]";
    }
    return all;
  };
  EXPECT_EQ(parts("csv:a.csv*3,csv:b.csv"), "[csv:a.csv 3][csv:b.csv 1]");
  EXPECT_EQ(parts("csv:a.csv,label=y,csv:b*.csv*2,drop=z"),
            "[csv:a.csv,label=y 1][csv:b*.csv,drop=z 2]");
  EXPECT_EQ(parts("csv:{a,csv:b}.csv"), "");
  EXPECT_EQ(parts("csv:a.csv*3"), "");
  EXPECT_EQ(parts("tar:x,csv:a"), "");
}

}  // namespace
}  // namespace ridge
