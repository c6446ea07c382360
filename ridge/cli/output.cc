#include "ridge/cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace ridge::cli {

void PrintData(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void PrintTalk(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// One write each, so that lines of several processes on one terminal stay whole.
void PrintError(const Status& status) { PrintTalk(fmt::format("ridge: {}\n", status.message())); }

void PrintWarning(const std::string& text) { PrintTalk(fmt::format("ridge: warning: {}\n", text)); }

std::function<void(const std::string&)> SayUnless(bool quiet) {
  if (quiet) return [](const std::string&) {};
  return [](const std::string& text) { PrintTalk(fmt::format("ridge: {}\n", text)); };
}

Status FinishOutput() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  const char* reason = errno != 0 ? std::strerror(errno) : "write error";
  return Status(ErrorCode::kUnavailable,
                fmt::format("standard output: {}; part of the output is missing", reason));
}

}  // namespace ridge::cli
