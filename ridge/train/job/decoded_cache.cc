#include "ridge/train/job/decoded_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/core/version.h"
#include "ridge/data/disk_cache.h"
#include "ridge/data/memory_cache.h"
#include "ridge/train/store/preprocessing_file.h"

namespace ridge {
namespace {

std::string NoteOf(const DiskCached& cached, const Source& source) {
  return fmt::format("--cache disk: {}{} holds the {} samples of {}, {}", cached.path,
                     cached.was_damaged ? " was damaged and is written again; it" : "",
                     source.size(), source.name(), FormatBytes(cached.file_bytes));
}

std::string NoteOf(const MemoryCached& cached, const Source& source, int64_t limit_bytes) {
  return fmt::format(
      "--cache memory: {} holds {} of the {} samples of {}; the others are decoded in each epoch",
      FormatBytes(limit_bytes), cached.samples, source.size(), source.name());
}

DiskCacheOptions DiskOptions(const TrainOptions& options, int threads, const DataSplits& splits) {
  DiskCacheOptions disk;
  disk.folder = SampleCacheFolder();
  disk.decoding = fmt::format("{}\n{}\n", kRidgeVersion, options.data);
  if (splits.preprocessing != nullptr) disk.decoding += PreprocessingToJson(*splits.preprocessing);
  disk.threads = threads;
  return disk;
}

// Half of what the run may use where no size is named.
int64_t MemoryLimit(const TrainOptions& options, const CacheChoice& choice) {
  if (choice.memory_bytes > 0) return choice.memory_bytes;
  return (options.fit_bytes > 0 ? options.fit_bytes : AvailableMemoryBytes()) / 2;
}

}  // namespace

std::string SampleCacheFolder() { return CacheFolder() + "/samples"; }

Status CacheDecoded(const TrainOptions& options, int threads, DataSplits& splits) {
  RIDGE_ASSIGN_OR_RETURN(const CacheChoice choice, ParseCache(options.cache));
  if (!choice.disk && !choice.memory) return Status();
  const DiskCacheOptions disk = DiskOptions(options, threads, splits);
  int64_t left = choice.memory ? MemoryLimit(options, choice) : 0;  // the sets share it in turn
  std::vector<SourcePtr> counted;
  for (SourcePtr* set : {&splits.train, &splits.validation, &splits.test}) {
    if (*set == nullptr) continue;
    if (!(*set)->reads_slowly()) {
      splits.notes.push_back(
          fmt::format("--cache {}: {} takes no time to decode, so nothing is cached",
                      choice.disk ? "disk" : "memory", (*set)->name()));
      return Status();
    }
    const SourcePtr decoded = *set;
    if (choice.disk) {
      RIDGE_ASSIGN_OR_RETURN(DiskCached cached, CacheOnDisk(decoded, disk, counted));
      if (!cached.was_there) splits.notes.push_back(NoteOf(cached, *decoded));
      *set = std::move(cached.source);
    } else {
      RIDGE_ASSIGN_OR_RETURN(MemoryCached cached, CacheDecodedInMemory(decoded, left, counted));
      if (cached.samples < decoded->size()) splits.notes.push_back(NoteOf(cached, *decoded, left));
      left -= cached.bytes;
      *set = std::move(cached.source);
    }
    counted.push_back(decoded);
  }
  return Status();
}

}  // namespace ridge
