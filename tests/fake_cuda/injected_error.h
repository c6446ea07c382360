// InjectedError: the error that a variable of the environment gives one call of a fake library.
//
//   RIDGE_FAKE_NCCL_FAIL=ncclSend:2:1    the second call since it was set fails with 1
#pragma once
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

namespace ridge::fake_cuda {

// Thread-safe.
class InjectedError {
 public:
  explicit InjectedError(const char* variable) : variable_(variable) {}

  // The code that this call of the function fails with; 0: none.  Only calls of the function that
  // the variable names are counted.
  template <typename Code>
  Code Of(const char* function) {
    const std::lock_guard hold(mutex_);
    const char* const text = std::getenv(variable_);
    const std::string wanted = std::string(function) + ":";
    if (text == nullptr || !std::string(text).starts_with(wanted)) return Code{};
    if (std::exchange(setting_, text) != text) calls_ = 0;
    char* rest = nullptr;
    const long call = std::strtol(text + wanted.size(), &rest, 10);
    return ++calls_ == call ? static_cast<Code>(std::strtol(rest + 1, nullptr, 10)) : Code{};
  }

 private:
  const char* const variable_;
  std::mutex mutex_;
  std::string setting_;
  int calls_ = 0;
};

}  // namespace ridge::fake_cuda
