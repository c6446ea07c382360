// The laws: what is read has the bits of the source; each value that is kept is decoded once; a
// cap keeps the first samples; failures stay failures; memory is counted exactly.
#include "ridge/data/memory_cache.h"

#include <atomic>
#include <cstring>
#include <thread>

#include "ridge/data/encoded_samples.h"
#include "ridge/data/subset.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

constexpr int64_t kRow = 5 + 8, kChecks = 2;  // bytes of a sample, and of what is known of it

// Two fields of each sample, "decoded" from a number; counts its reads.
class Encoded : public Source, public EncodedSamples {
 public:
  explicit Encoded(std::vector<int> content)
      : Source("encoded", {{"image", {DType::kU8, {5}}}, {"label", {DType::kI64, {}}}},
               static_cast<int64_t>(content.size())),
        content_(std::move(content)) {}

  Status Read(SampleAt at, int field, std::span<char>, void* out) const override {
    ++reads;
    const int content = content_[static_cast<size_t>(at.index)];
    if (content < 0) return Status(ErrorCode::kInvalidData, Origin(at.index) + ": cut off");
    const int64_t label = content + 1000;
    if (field == 1)
      std::memcpy(out, &label, sizeof label);
    else
      std::memset(out, at.crop != nullptr ? 99 : content, 5);
    return Status();
  }
  bool reads_slowly() const override { return true; }
  int64_t resident_bytes() const override { return 100; }
  Status AddContent(int64_t, std::vector<char>&, ContentHash&) const override { return Status(); }

  mutable std::atomic<int> reads = 0;

 private:
  std::vector<int> content_;
};

std::shared_ptr<Encoded> Samples(std::vector<int> content = {7, 1, 250, 3, 9}) {
  return std::make_shared<Encoded>(std::move(content));
}

std::string All(const Source& source) {
  std::string all;
  for (int64_t i = 0; i < source.size(); ++i) {
    for (int field = 0; field < 2; ++field) {
      char out[8] = {};
      const Status read = source.ReadOne(i, field, out);
      all += read.ok() ? std::string(out, sizeof out) : read.message();
    }
  }
  return all;
}

MemoryCached Cache(const SourcePtr& source, int64_t limit = 1 << 20) {
  auto cached = CacheDecodedInMemory(source, limit);
  EXPECT_TRUE(cached.ok()) << cached.status().message();
  return cached.ok() ? *cached : MemoryCached();
}

TEST(MemoryCacheTest, GivesTheBitsOfTheSourceAndDecodesOnce) {
  const auto source = Samples();
  const MemoryCached cached = Cache(source);
  EXPECT_EQ(source->reads, 0);
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(All(*cached.source), All(*Samples()));
  EXPECT_EQ(source->reads, 10);
  EXPECT_EQ(cached.bytes, 5 * (kRow + kChecks));
  EXPECT_EQ(cached.source->resident_bytes(), 100 + cached.bytes);
}

TEST(MemoryCacheTest, ACapKeepsTheFirstSamples) {
  for (int64_t kept = 0; kept <= 6; ++kept) {
    const auto source = Samples();
    const int64_t limit = kept * (kRow + kChecks) + kRow;
    const MemoryCached cached = Cache(source, limit);
    EXPECT_EQ(cached.samples, std::min<int64_t>(kept, 5));
    EXPECT_LE(cached.bytes, limit);
    All(*cached.source);
    EXPECT_EQ(All(*cached.source), All(*Samples()));
    EXPECT_EQ(source->reads, 2 * (cached.samples + 2 * (5 - cached.samples)));
  }
  EXPECT_EQ(Cache(Samples(), -1).samples, 0);
}

TEST(MemoryCacheTest, CropsAreReadFromTheSource) {
  const auto source = Samples();
  const MemoryCached cached = Cache(source);
  All(*cached.source);
  const CropDraw crop{};
  char out[5] = {};
  ASSERT_TRUE(cached.source->Read({.index = 1, .crop = &crop}, 0, {}, out).ok());
  EXPECT_EQ(out[0], 99);
  EXPECT_EQ(All(*cached.source), All(*Samples()));
}

TEST(MemoryCacheTest, WhatCannotBeDecodedFailsEachTime) {
  const std::vector<int> content = {7, -1, 250};
  const MemoryCached cached = Cache(Samples(content));
  for (int epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(All(*cached.source), All(*Samples(content)));
  EXPECT_NE(All(*cached.source).find("encoded[1]: cut off"), std::string::npos);
}

TEST(MemoryCacheTest, ThreadsThatReadOneSampleGetItsBits) {
  std::vector<int> content(64);
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<int>(i);
  const MemoryCached cached = Cache(Samples(content));
  const std::string want = All(*Samples(content));
  std::vector<std::string> got(4);
  std::vector<std::thread> threads;
  for (std::string& one : got) threads.emplace_back([&] { one = All(*cached.source); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : got) EXPECT_EQ(one, want);
  EXPECT_EQ(All(*cached.source), want);
}

TEST(MemoryCacheTest, MemoryThatPartsShareIsCountedOnce) {
  const SourcePtr all = Samples();
  const SourcePtr part = std::make_shared<SubsetSource>(all, 0, 3);
  const SourcePtr rest = std::make_shared<SubsetSource>(all, 3, 2);
  const MemoryCached first = Cache(part);
  const auto second = CacheDecodedInMemory(rest, 1 << 20, {part});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(All(*second->source), All(*rest));
  EXPECT_EQ(ResidentBytes({first.source, second->source}), 100 + 5 * (kRow + kChecks));
}

TEST(MemoryCacheTest, RefusesSamplesThatMayDifferByEpoch) {
  const std::string refusal =
      "counting: its samples do not lie encoded in files, so none are cached";
  EXPECT_EQ(Message(CacheDecodedInMemory(CountingSource(4), 1000)), refusal);
  const SourcePtr part = std::make_shared<SubsetSource>(CountingSource(4), 0, 2);
  EXPECT_EQ(CacheDecodedInMemory(part, 1000).status().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace ridge
