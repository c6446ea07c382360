// Status and Result<T>: how a fallible ridge function tells what went wrong.
//
// What a user, a file or a machine can cause comes back as a Status.  RIDGE_CHECK is for our own
// bugs: it throws Bug, which every public boundary (command line, C++, Python) catches.
// GCC 12 with -std=c++20 has no <expected>, so Result is ours.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace ridge {

// What the caller can do about an error, not where it came from.
enum class ErrorCode {
  kOk,
  kInvalidArgument,  // usage: an option or argument is wrong            exit 2
  kOutOfMemory,      // does not fit                                     exit 3
  kInvalidData,      // data or checkpoint bad or missing                exit 4
  kInvalidModel,     // graph or model file invalid or missing           exit 5
  kUnsupported,      // valid, but no kernel or gradient for it          exit 5
  kDevice,           // device or driver                                 exit 6
  kDeviceMemory,     // it has no memory left that a plan may count on   exit 6
  kQualityGate,      // a required accuracy was not met                  exit 7
  kUnavailable,      // may work when tried again (disk full, no access) exit 1
  kFailed,           // the run itself failed, such as a NaN loss        exit 1
  kInternal,         // a bug of ours                                    exit 1
};

constexpr bool IsOfDevice(ErrorCode code) {
  return code == ErrorCode::kDevice || code == ErrorCode::kDeviceMemory;
}

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

inline Status InvalidArgument(std::string message) {
  return Status(ErrorCode::kInvalidArgument, std::move(message));
}

// Either a T or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// The one exception: a broken invariant of ridge itself.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void ThrowBug(const char* file, int line, const char* condition,
                           const std::string& message);

}  // namespace ridge

#define RIDGE_RETURN_IF_ERROR(expr)                       \
  do {                                                    \
    if (::ridge::Status s_ = (expr); !s_.ok()) return s_; \
  } while (false)

#define RIDGE_CONCAT_(a, b) a##b
#define RIDGE_CONCAT(a, b) RIDGE_CONCAT_(a, b)

// RIDGE_ASSIGN_OR_RETURN(Graph graph, ParseGraph(text));
#define RIDGE_ASSIGN_OR_RETURN(declaration, expr) \
  RIDGE_ASSIGN_OR_RETURN_(RIDGE_CONCAT(result_, __LINE__), declaration, expr)
#define RIDGE_ASSIGN_OR_RETURN_(result, declaration, expr) \
  auto result = (expr);                                    \
  if (!result.ok()) return result.status();                \
  declaration = std::move(*result)

#define RIDGE_CHECK(condition, message)                                             \
  do {                                                                              \
    if (!(condition)) ::ridge::ThrowBug(__FILE__, __LINE__, #condition, (message)); \
  } while (false)
