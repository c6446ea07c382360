#include "ridge/cli/cudnn_asker.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "ridge/cli/output.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/sha256.h"
#include "ridge/core/split.h"
#include "ridge/core/units.h"

namespace ridge::cli {
namespace {

constexpr const char* kScript = "scripts/build_cudnn_ask.sh";
constexpr int64_t kMostBytes = 64 << 20;  // of kept answers
constexpr std::string_view kRefused = "refused ";

// "FIRST_BYTES DETERMINISTIC_BYTES SAME ENGINE", or "refused REASON"; false: neither.
bool ReadAnswer(const std::string& line, std::optional<ConvAnswer>& answer) {
  answer.reset();
  if (line.starts_with(kRefused)) return true;
  std::istringstream in(line);
  ConvAnswer read;
  int is_same = 0;
  if (!(in >> read.first_bytes >> read.bytes >> is_same)) return false;
  if (read.first_bytes < 0 || read.bytes < 0) return false;
  answer = read;
  return true;
}

// cudnn_ask's first line: 91900 is 9.19.0.
Result<std::string> LibraryFrom(const std::string& line) {
  const int64_t number = std::atoll(line.c_str());
  if (number < 10'000)
    return Status(ErrorCode::kUnavailable, fmt::format("began with '{}', no version", line));
  return fmt::format("cuDNN {}.{}.{}", number / 10'000, number / 100 % 100, number % 100);
}

// A line a question: QUESTION, a tab, its answer.
std::string KeptFile(const CudnnPlaces& places, const std::string& library,
                     const std::string& device, const std::string& description) {
  return fmt::format("{}/{}/{}-{}.txt", places.cache_folder, library, device,
                     Sha256Hex(description).substr(0, 16));
}

}  // namespace

CudnnPlaces CudnnPlacesHere() {
  const char* folder = std::getenv("RIDGE_CUDNN");
  return {folder == nullptr ? "" : folder, CacheFolder() + "/cudnn"};
}

CudnnAsker::CudnnAsker(std::string device, CudnnPlaces places, Say say, Say warn)
    : device_(std::move(device)),
      places_(std::move(places)),
      say_(std::move(say)),
      warn_(std::move(warn)) {}

CudnnAsker::~CudnnAsker() {
  if (asked_ == 0) return;
  Keep();
  say_(fmt::format("{} answered {} in {}", library_, FormatCountOf(asked_, "question"),
                   FormatSeconds(asked_s_)));
}

std::optional<ConvReply> CudnnAsker::Ask(const std::string& question) {
  if (has_failed_) return std::nullopt;
  if (!is_started_) {
    if (const Status started = Start(); !started.ok()) return Fail(started.message());
  }
  const Result<std::string> line = AnswerTo(question);
  if (!line.ok())
    return Fail(
        fmt::format("{}/cudnn_ask {} to '{}'", places_.folder, line.status().message(), question));
  std::optional<ConvAnswer> answer;
  if (!ReadAnswer(*line, answer))
    return Fail(fmt::format("{}/cudnn_ask answered '{}' to '{}'", places_.folder, *line, question));
  return answer ? std::optional(ConvReply{library_, *answer}) : std::nullopt;
}

Status CudnnAsker::Start() {
  is_started_ = true;
  const std::string program = places_.folder + "/cudnn_ask";
  const std::string properties = fmt::format("{}/devices/{}.json", places_.folder, device_);
  for (const std::string& file : {program, properties}) {
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
      return Status(ErrorCode::kUnavailable, file + " is not there");
  }
  RIDGE_ASSIGN_OR_RETURN(description_, ReadFile(properties, kMostBytes));
  const auto named = [&](const Status& status) {
    return Status(status.code(), fmt::format("{} {}", program, status.message()));
  };
  const Status started =
      child_.Start({program, places_.folder + "/nvidia/cudnn/lib/libcudnn.so.9", properties});
  if (!started.ok()) return named(started);
  const Result<std::string> line = child_.Read(places_.seconds);
  if (!line.ok()) return named(line.status());
  Result<std::string> library = LibraryFrom(*line);
  if (!library.ok()) return named(library.status());
  library_ = *std::move(library);
  LoadKept();
  return {};
}

Result<std::string> CudnnAsker::AnswerTo(const std::string& question) {
  if (const auto known = answers_.find(question); known != answers_.end()) return known->second;
  if (asked_ == 0)
    say_(fmt::format("asking {} about convolutions on {} (answers are kept in {})", library_,
                     device_, places_.cache_folder));
  const double start_s = MonotonicSeconds();
  RIDGE_RETURN_IF_ERROR(child_.Write(question));
  RIDGE_ASSIGN_OR_RETURN(std::string line, child_.Read(places_.seconds));
  ++asked_;
  asked_s_ += MonotonicSeconds() - start_s;
  constexpr int64_t kBetween = 100;  // lines of progress
  if (asked_ % kBetween == 0)
    say_(fmt::format("{} answered {} so far", library_, FormatCountOf(asked_, "question")));
  std::optional<ConvAnswer> answer;
  if (ReadAnswer(line, answer)) answers_[question] = line;
  return line;
}

std::optional<ConvReply> CudnnAsker::Fail(const std::string& what) {
  has_failed_ = true;
  warn_(
      fmt::format("RIDGE_CUDNN: {}; workspaces on {} that are not known stay upper bounds. hint: "
                  "{} {}",
                  what, device_, kScript, places_.folder));
  return std::nullopt;
}

void CudnnAsker::LoadKept() {
  const Result<std::string> text =
      ReadFile(KeptFile(places_, library_, device_, description_), kMostBytes);
  if (!text.ok()) return;  // nothing is kept yet
  for (const std::string_view line : SplitAt(*text, '\n')) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) continue;
    std::optional<ConvAnswer> answer;
    const std::string kept(line.substr(tab + 1));
    if (ReadAnswer(kept, answer)) answers_[std::string(line.substr(0, tab))] = kept;
  }
}

void CudnnAsker::Keep() const {
  const std::string path = KeptFile(places_, library_, device_, description_);
  std::string text;
  for (const auto& [question, answer] : answers_) text += question + "\t" + answer + "\n";
  Status kept = MakeFolders(std::filesystem::path(path).parent_path().string());
  if (kept.ok()) kept = WriteFileAtomically(path, text);
  if (!kept.ok()) warn_(fmt::format("cuDNN's answers are not kept: {}", kept.message()));
}

AskConv AskCudnn(const std::string& device, CudnnAsker::Say say) {
  CudnnPlaces places = CudnnPlacesHere();
  if (places.folder.empty()) return nullptr;
  const auto asker =
      std::make_shared<CudnnAsker>(device, std::move(places), std::move(say), PrintWarning);
  return [asker](const std::string& question) { return asker->Ask(question); };
}

}  // namespace ridge::cli
