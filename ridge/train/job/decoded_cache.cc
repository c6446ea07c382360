#include "ridge/train/job/decoded_cache.h"

#include <fmt/format.h>

#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/core/version.h"
#include "ridge/data/disk_cache.h"
#include "ridge/train/store/preprocessing_file.h"

namespace ridge {
namespace {

std::string NoteOf(const DiskCached& cached, const Source& source) {
  return fmt::format("--cache disk: {}{} holds the {} samples of {}, {}", cached.path,
                     cached.was_damaged ? " was damaged and is written again; it" : "",
                     source.size(), source.name(), FormatBytes(cached.file_bytes));
}

}  // namespace

Status CacheDecoded(const TrainOptions& options, int threads, DataSplits& splits) {
  if (options.cache.empty()) return Status();
  DiskCacheOptions disk;
  disk.folder = CacheFolder() + "/samples";
  disk.decoding = fmt::format("{}\n{}\n", kRidgeVersion, options.data);
  if (splits.preprocessing != nullptr) disk.decoding += PreprocessingToJson(*splits.preprocessing);
  disk.threads = threads;
  std::vector<SourcePtr> counted;
  for (SourcePtr* set : {&splits.train, &splits.validation, &splits.test}) {
    if (*set == nullptr) continue;
    if (!(*set)->reads_slowly()) {
      splits.notes.push_back("--cache disk: " + (*set)->name() +
                             " takes no time to decode, so nothing is cached");
      return Status();
    }
    const SourcePtr decoded = *set;
    RIDGE_ASSIGN_OR_RETURN(DiskCached cached, CacheOnDisk(decoded, disk, counted));
    if (!cached.was_there) splits.notes.push_back(NoteOf(cached, *decoded));
    *set = std::move(cached.source);
    counted.push_back(decoded);
  }
  return Status();
}

}  // namespace ridge
