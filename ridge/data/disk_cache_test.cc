// The laws: what is read from the cache has the bits of the source; changed files and options make
// another cache; no damaged byte is ever given out, and a damaged file is written again.
#include "ridge/data/disk_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ridge/core/files.h"
#include "ridge/data/encoded_samples.h"
#include "ridge/data/subset.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

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
      std::memset(out, content, 5);
    return Status();
  }
  bool reads_slowly() const override { return true; }
  int64_t resident_bytes() const override { return 100; }
  Status AddContent(int64_t index, std::vector<char>&, ContentHash& hash) const override {
    hash.Add(std::to_string(content_[static_cast<size_t>(index)]));
    return Status();
  }

  mutable std::atomic<int> reads = 0;

 private:
  std::vector<int> content_;
};

class DiskCacheTest : public testing::Test {
 protected:
  DiskCached Open(const SourcePtr& source, const std::string& decoding = "size=5") {
    auto cached = CacheOnDisk(source, {folder_.File("cache"), decoding, /*threads=*/3});
    EXPECT_TRUE(cached.ok()) << cached.status().message();
    return cached.ok() ? *cached : DiskCached();
  }
  static std::shared_ptr<Encoded> Samples(std::vector<int> content = {7, 1, 250, 3, 9}) {
    return std::make_shared<Encoded>(std::move(content));
  }
  static std::string All(const Source& source) {
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
  size_t Files() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.File("cache")))
      ++files;
    return files;
  }

  TempFolder folder_;
};

TEST_F(DiskCacheTest, GivesTheBitsOfTheSourceAndDecodesOnce) {
  const auto source = Samples();
  const DiskCached first = Open(source);
  EXPECT_FALSE(first.was_there);
  EXPECT_EQ(source->reads, 10);
  EXPECT_EQ(All(*first.source), All(*Samples()));
  const DiskCached second = Open(source);
  EXPECT_TRUE(second.was_there);
  EXPECT_EQ(All(*second.source), All(*Samples()));
  EXPECT_EQ(source->reads, 10);
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(first.path)), first.file_bytes);
  EXPECT_EQ(Files(), 1U);
}

TEST_F(DiskCacheTest, OtherContentOrderOrOptionsAreAnotherCache) {
  Open(Samples());
  EXPECT_FALSE(Open(Samples({7, 1, 250, 3, 8})).was_there);
  EXPECT_FALSE(Open(Samples({1, 7, 250, 3, 9})).was_there);
  EXPECT_FALSE(Open(Samples({7, 1, 250, 3})).was_there);
  EXPECT_FALSE(Open(Samples(), "size=6").was_there);
  EXPECT_TRUE(Open(Samples()).was_there);
  EXPECT_EQ(Files(), 5U);
}

TEST_F(DiskCacheTest, NoDamagedByteIsGivenOut) {
  const std::string want = All(*Samples());
  const DiskCached whole = Open(Samples());
  const std::string bytes = *ReadFile(whole.path);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(whole.path, std::ios::binary) << damaged;
    EXPECT_EQ(All(*Open(Samples()).source), want) << at;
    EXPECT_EQ(All(*Open(Samples()).source), want) << at;
    EXPECT_EQ(*ReadFile(whole.path), bytes) << "byte " << at << ": not written again";
  }
  for (const size_t size : {size_t{0}, size_t{10}, size_t{64}, bytes.size() - 1}) {
    std::ofstream(whole.path, std::ios::binary) << bytes.substr(0, size);
    const DiskCached again = Open(Samples());
    EXPECT_TRUE(again.was_damaged);
    EXPECT_EQ(All(*again.source), want) << size;
  }
  EXPECT_EQ(Files(), 1U);
}

TEST_F(DiskCacheTest, AFileCutWhileItIsReadIsDecodedFromThere) {
  const DiskCached cached = Open(Samples());
  fs::resize_file(cached.path, 200);
  EXPECT_EQ(All(*cached.source), All(*Samples()));
  EXPECT_FALSE(fs::exists(cached.path));
}

TEST_F(DiskCacheTest, WhatCannotBeDecodedFailsWhenItIsRead) {
  const std::vector<int> content = {7, -1, 250};
  const DiskCached cached = Open(Samples(content));
  EXPECT_EQ(All(*cached.source), All(*Samples(content)));
  EXPECT_NE(All(*cached.source).find("encoded[1]: cut off"), std::string::npos);
  EXPECT_TRUE(Open(Samples(content)).was_there);
}

TEST_F(DiskCacheTest, PartsOfASourceAreCachedAndSharedMemoryIsCountedOnce) {
  const SourcePtr all = Samples();
  const SourcePtr part = std::make_shared<SubsetSource>(all, 0, 3);
  const SourcePtr rest = std::make_shared<SubsetSource>(all, 3, 2);
  const DiskCached first = Open(part);
  EXPECT_EQ(All(*first.source), All(*part));
  const auto second = CacheOnDisk(rest, {folder_.File("cache"), "size=5", 1}, {part});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(All(*second->source), All(*rest));
  EXPECT_EQ(ResidentBytes({first.source, second->source}), 100 + 5 * 2 * 8);
}

TEST_F(DiskCacheTest, RefusesWhatItCannotKeep) {
  const DiskCacheOptions options{folder_.File("cache"), "", 1};
  EXPECT_EQ(Message(CacheOnDisk(CountingSource(4), options)),
            "counting: its samples do not lie encoded in files, so none are cached");
  folder_.Write("cache", "a file");
  EXPECT_EQ(CacheOnDisk(Samples(), options).status().code(), ErrorCode::kUnavailable);
}

TEST_F(DiskCacheTest, ListsItsOwnFilesAndThoseOfProcessesThatEnded) {
  const std::string folder = folder_.File("cache");
  EXPECT_TRUE(ListDiskCaches(folder)->empty());
  const DiskCached cached = Open(Samples());
  const std::string key(64, 'a');
  for (const std::string& name :
       {key + ".samples.tmp-" + std::to_string(::getpid()), key + ".samples.tmp-",
        key + ".samples.tmp-1x", key + ".samples.tmp--1", key + ".samples.tmp-99999999999",
        key + "x.samples", key, std::string("notes.samples")})
    folder_.Write("cache/" + name, "kept");
  fs::create_directory(folder_.File("cache/" + std::string(64, 'b') + ".samples"));
  fs::create_symlink(cached.path, folder_.File("cache/" + std::string(64, 'c') + ".samples"));
  const std::string left = key + ".samples.tmp-999999999";
  folder_.Write("cache/" + left, "half");
  auto files = ListDiskCaches(folder);
  ASSERT_TRUE(files.ok() && files->size() == 2U);
  std::sort(files->begin(), files->end(),
            [](const auto& a, const auto& b) { return a.samples < b.samples; });
  EXPECT_EQ(files->front().path, folder + "/" + left);
  EXPECT_EQ(files->front().samples, 0);
  EXPECT_EQ(files->back().path, cached.path);
  EXPECT_EQ(files->back().samples, 5);
  EXPECT_EQ(files->back().file_bytes, cached.file_bytes);
}

TEST_F(DiskCacheTest, ARunGoesOnReadingACacheThatIsRemoved) {
  const DiskCached cached = Open(Samples());
  const auto files = ListDiskCaches(folder_.File("cache"));
  ASSERT_TRUE(files.ok() && files->size() == 1U);
  EXPECT_TRUE(RemoveDiskCache(files->front()).ok());
  EXPECT_TRUE(RemoveDiskCache(files->front()).ok());
  EXPECT_EQ(Files(), 0U);
  EXPECT_EQ(All(*cached.source), All(*Samples()));
}

}  // namespace
}  // namespace ridge
