#include "ridge/cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "ridge/core/files.h"
#include "ridge/report/text.h"

namespace ridge::cli {

void PrintData(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintTalk(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

bool IsStandardOutput(const std::optional<std::string>& file) {
  if (!file) return false;
  const Result<OutputTarget> target = FindOutputTarget(*file);
  return target.ok() && target->descriptor == STDOUT_FILENO;
}

Status OneOnStandardOutput(const std::vector<std::pair<const char*, bool>>& options) {
  const char* first = nullptr;
  for (const auto& [name, there] : options) {
    if (!there) continue;
    if (first != nullptr) {
      return InvalidArgument(
          fmt::format("{} and {} both write to standard output. hint: {} with a file's "
                      "name",
                      first, name, name));
    }
    first = name;
  }
  return Status();
}

namespace {

// One write, so that lines of several processes on one terminal stay whole.  Messages quote names
// and cells of files, which a terminal must not obey.
void Tell(const char* head, const std::string& text) {
  PrintTalk(fmt::format("ridge: {}{}\n", head, PrintableLines(text)));
}

}  // namespace

void PrintError(const Status& status) {
  (void)FinishOutput();  // in order where both go to one file; its own error shows at the end
  Tell("", status.message());
}

void PrintWarning(const std::string& text) { Tell("warning: ", text); }

std::function<void(const std::string&)> SayUnless(bool quiet) {
  if (quiet) return [](const std::string&) {};
  return [](const std::string& text) { Tell("", text); };
}

Status FinishOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const char* reason = errno != 0 ? std::strerror(errno) : "write error";
  return Status(ErrorCode::kUnavailable,
                fmt::format("standard output: {}; part of the output is missing", reason));
}

}  // namespace ridge::cli
