// Files: whole reads with a cap, and writes that a crash cannot tear.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

// Fails with kInvalidData when the file is missing, unreadable or larger than `max_bytes`.
Result<std::string> ReadFile(const std::string& path, int64_t max_bytes = int64_t{1} << 40);

// The name under which users mean standard output.
inline constexpr std::string_view kStandardOutput = "-";

// The file that a name given for output means, links followed.
struct OutputTarget {
  std::string path;       // "" for a descriptor
  int descriptor = -1;    // "-", /dev/stdout and the like: one that this process has open
  bool in_place = false;  // a device, a pipe, a descriptor: written to, never replaced
  int permissions = -1;   // of the regular file that is there; -1: there is none
  int owner = -1, group = -1;
};
// Fails with kUnavailable when links lead in a circle.
Result<OutputTarget> FindOutputTarget(const std::string& name);

// Writes FILE.tmp-PID, fsyncs it, renames it over FILE and fsyncs the folder: after a crash FILE
// holds the old content or the new, never a part.  FILE is what `path` means: the end of a
// link, which stays a link; an existing file keeps permissions and owner.  What cannot be replaced
// is written to.  Fails with kUnavailable.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// The bytes of the file at `from`, to a target that is written in place.  Fails with kUnavailable.
Status CopyInto(const OutputTarget& target, const std::string& from);

// Gives a new file the permissions and the owner of what it will replace; what the system refuses
// stays as it is.
void TakePermissions(const OutputTarget& target, const std::string& path);

// Makes data under `path` (a file or a folder) survive a power loss.
Status SyncPath(const std::string& path);

// mkdir -p.
Status MakeFolders(const std::string& path);

// $XDG_CACHE_HOME/ridge, or ~/.cache/ridge; a relative value is ignored, as the XDG rules say.
// Without HOME, ~ is the user's home by the system's records: never a folder that others write to.
std::string CacheFolder();
// $XDG_STATE_HOME/ridge, or ~/.local/state/ridge, by the same rules.
std::string StateFolder();

}  // namespace ridge
