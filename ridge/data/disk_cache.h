// Disk cache: decoded samples of a source in one file, for this run and later ones.
//
// The file's name is a SHA-256 of what the samples are decoded from and of all options that matter,
// so changed files or options make another cache.  Each value has a checksum: one that does not fit
// is decoded again, and the file is deleted, so that the next run writes it anew.  The file is
// written under another name and renamed when it is whole.
//
//   header   "ridgesc1", samples, bytes of a sample, CRC-32C of the checks, CRC-32C of these 28
//            bytes; zeros up to 64
//   checks   for each field of each sample u32 CRC-32C, u32 1; 0 where it could not be decoded
//   samples  the fields of each side by side, as Source::Read gives them
#pragma once
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

struct DiskCacheOptions {
  std::string folder;
  std::string
      decoding;     // what samples depend on beside their files: options, the program's version
  int threads = 1;  // that decode
};

struct DiskCached {
  SourcePtr source;
  std::string path;
  int64_t file_bytes = 0;
  bool was_there = false;    // whole, and of these samples
  bool was_damaged = false;  // and written again
};

// Reads all encoded samples, and decodes them where there is no cache.  What cannot be decoded
// fails when it is read, as without a cache.  `counted`: sources whose memory is counted elsewhere.
// Fails with kUnsupported for samples that are not encoded in files, with kUnavailable where the
// disk has no room or cannot be written.
Result<DiskCached> CacheOnDisk(const SourcePtr& source, const DiskCacheOptions& options,
                               const std::vector<SourcePtr>& counted = {});

// A file in the folder of caches: whole, or left by a run that was killed while it wrote.
struct DiskCacheFile {
  std::string path;
  int64_t file_bytes = 0;
  int64_t samples = 0;    // 0: not whole
  int64_t written_s = 0;  // since 1970
};

// By path; other files are none, nor are those that a process writes now.  Empty without a folder.
// Fails with kUnavailable where it cannot be listed.
Result<std::vector<DiskCacheFile>> ListDiskCaches(const std::string& folder);

// Runs that read it go on reading.  Fails with kUnavailable; a file that is gone is no failure.
Status RemoveDiskCache(const DiskCacheFile& file);

}  // namespace ridge
