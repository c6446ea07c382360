#include "ridge/dist/test_delay.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "ridge/core/process.h"

namespace ridge {
namespace {

// The number before the next ':', which is taken away with it; -1 for none.
int64_t TakeNumber(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto used = static_cast<size_t>(end - text.data());
  const bool ends = used == text.size() || text[used] == ':';
  text.remove_prefix(std::min(text.size(), used + 1));
  return error == std::errc() && ends ? number : -1;
}

}  // namespace

Result<TestDelay> TestDelay::FromEnvironment(int rank) {
  TestDelay delay;
  const char* given = std::getenv("RIDGE_TEST_DELAY");
  if (given == nullptr || *given == '\0') return delay;
  std::string_view rest = given;
  const int64_t late = TakeNumber(rest), ms = TakeNumber(rest);
  const int64_t free = rest.empty() ? 0 : TakeNumber(rest);
  if (late < 0 || ms < 0 || free < 0) {
    return InvalidArgument(
        fmt::format("RIDGE_TEST_DELAY is '{}'; it must be RANK:MS, RANK:MS:FREE or "
                    "RANK:MS:FREE:NAME",
                    given));
  }
  if (late != rank) return delay;
  delay.seconds_ = static_cast<double>(ms) * 1e-3;
  delay.free_ = free;
  delay.name_ = rest;
  delay.applies_ = delay.name_.empty();
  return delay;
}

void TestDelay::Name(const char* collective) {
  applies_ = name_.empty() || (collective != nullptr && name_ == collective);
}

void TestDelay::Wait() {
  if (seconds_ <= 0 || !applies_ || free_-- > 0) return;
  const double end_s = MonotonicSeconds() + seconds_;
  while (MonotonicSeconds() < end_s) {
  }
}

}  // namespace ridge
