// Files: whole reads with a cap, and writes that a crash cannot tear.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

// Fails with kInvalidData when the file is missing, unreadable or larger than `max_bytes`.
Result<std::string> ReadFile(const std::string& path, int64_t max_bytes = int64_t{1} << 40);

// Writes PATH.tmp-PID, fsyncs it, renames it over PATH and fsyncs the folder: after a crash PATH
// holds the old content or the new, never a part.  Fails with kUnavailable.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// Makes data under `path` (a file or a folder) survive a power loss.
Status SyncPath(const std::string& path);

// mkdir -p.
Status MakeFolders(const std::string& path);

// $XDG_CACHE_HOME/ridge, or ~/.cache/ridge; a relative value is ignored, as the XDG rules say.
std::string CacheFolder();

}  // namespace ridge
