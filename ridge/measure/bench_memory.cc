// The memory is one allocation, so a pattern covers all of it before any of it is read back.
#include "ridge/measure/bench_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "ridge/core/units.h"

namespace ridge {
namespace {

using Found = std::array<PatternErrors, kPatternParts>;

class MemoryBench {
 public:
  MemoryBench(Device& device, const MakePatternKernels& make) : device_(device), make_(make) {}

  Status Open(int64_t bytes) {
    RIDGE_ASSIGN_OR_RETURN(memory_, device_.Allocate(bytes));
    RIDGE_ASSIGN_OR_RETURN(found_, device_.Allocate(sizeof(Found)));
    for (auto& event : events_) event = device_.MakeEvent();
    memory_->MakeResident();  // the first touch of a page is not timed
    return Status();
  }

  int64_t bytes() const { return memory_->bytes(); }
  const std::optional<WrongWord>& first_wrong() const { return first_wrong_; }

  Status Run(const PatternCall& call, PatternResult& result) {
    RIDGE_ASSIGN_OR_RETURN(const PatternKernels kernels, make_(call));
    const void* const in[] = {memory_->data()};
    void* const to_memory[] = {memory_->data()};
    void* const to_found[] = {found_->data()};
    RIDGE_ASSIGN_OR_RETURN(const double write_s, Time(*kernels.write, {{}, to_memory}));
    RIDGE_ASSIGN_OR_RETURN(const double verify_s, Time(*kernels.verify, {in, to_found}));
    const bool first = call.round == 0;
    result.write_s = first ? write_s : std::min(result.write_s, write_s);
    result.verify_s = first ? verify_s : std::min(result.verify_s, verify_s);
    return Count(call, result);
  }

 private:
  Result<double> Time(Kernel& kernel, const KernelBuffers& buffers) {
    Stream& stream = device_.stream(0);
    stream.Record(*events_[0]);
    RIDGE_RETURN_IF_ERROR(kernel.Enqueue(stream, buffers));
    stream.Record(*events_[1]);
    RIDGE_RETURN_IF_ERROR(stream.Synchronize());
    return SecondsBetween(*events_[0], *events_[1]);
  }

  Status Download(void* to, const std::byte* from, int64_t bytes) {
    device_.stream(0).Download(to, from, bytes);
    return device_.stream(0).Synchronize();
  }

  Status Count(const PatternCall& call, PatternResult& result) {
    Found found;
    RIDGE_RETURN_IF_ERROR(Download(found.data(), found_->data(), sizeof(found)));
    PatternErrors all;
    for (const PatternErrors& part : found) {
      all.words += part.words;
      all.first_word = std::min(all.first_word, part.first_word);
    }
    result.wrong_words += static_cast<int64_t>(all.words);
    if (all.words == 0 || first_wrong_) return Status();
    first_wrong_ = WrongWord{call, all.first_word};
    const auto at = static_cast<int64_t>(8 * all.first_word);
    return Download(&first_wrong_->is, memory_->data() + at, sizeof(first_wrong_->is));
  }

  Device& device_;
  const MakePatternKernels& make_;
  std::unique_ptr<Memory> memory_, found_;
  std::array<std::unique_ptr<Event>, 2> events_;
  std::optional<WrongWord> first_wrong_;
};

nlohmann::ordered_json OrNull(const std::optional<double>& count) {
  return count ? nlohmann::ordered_json(static_cast<int64_t>(*count)) : nullptr;
}

}  // namespace

Result<BenchMemoryResult> BenchMemory(Device& device, const MakePatternKernels& make,
                                      const BenchMemoryRequest& request, CounterSource* counters) {
  MemoryBench bench(device, make);
  RIDGE_RETURN_IF_ERROR(bench.Open(request.bytes));
  CounterSums sums;
  if (counters != nullptr) sums.Add(counters->Read());
  BenchMemoryResult result;
  result.bytes = bench.bytes();
  result.rounds = request.rounds;
  for (const MemoryPattern pattern : kMemoryPatterns) {
    PatternResult& of = result.patterns.emplace_back(PatternResult{pattern});
    for (int64_t round = 0; round < request.rounds; ++round)
      RIDGE_RETURN_IF_ERROR(bench.Run({pattern, bench.bytes(), static_cast<uint32_t>(round)}, of));
  }
  if (counters != nullptr) sums.Add(counters->Read());
  result.counters = sums.Since({});
  result.first_wrong = bench.first_wrong();
  return result;
}

Status CheckMemory(const std::string& device, const BenchMemoryResult& result) {
  constexpr char kHint[] = "hint: train on another device; nvidia-smi -q -d ECC has a GPU's counts";
  int64_t wrong = 0;
  for (const PatternResult& of : result.patterns) wrong += of.wrong_words;
  if (result.first_wrong) {
    const WrongWord& first = *result.first_wrong;
    return Status(ErrorCode::kDevice,
                  fmt::format("{}: {} came back wrong; the first, at byte {} of pattern '{}', is "
                              "{:#018x} and must be {:#018x}. {}",
                              device, FormatCountOf(wrong, "word"), 8 * first.index,
                              MemoryPatternName(first.call.pattern), first.is,
                              PatternWord(first.call, first.index), kHint));
  }
  const auto errors = static_cast<int64_t>(result.counters.uncorrected_errors.value_or(0));
  if (errors == 0) return Status();
  return Status(ErrorCode::kDevice, fmt::format("{}: ECC could not correct {}. {}", device,
                                                FormatCountOf(errors, "error"), kHint));
}

std::string BenchMemoryToJson(const std::string& device, const BenchMemoryResult& result) {
  nlohmann::ordered_json json = {
      {"device", device}, {"bytes", result.bytes}, {"rounds", result.rounds}};
  json["patterns"] = nlohmann::ordered_json::array();
  for (const PatternResult& of : result.patterns) {
    json["patterns"].push_back({{"pattern", MemoryPatternName(of.pattern)},
                                {"write_bytes_per_s", result.bytes_per_s(of.write_s)},
                                {"verify_bytes_per_s", result.bytes_per_s(of.verify_s)},
                                {"wrong_words", of.wrong_words}});
  }
  json["corrected_errors"] = OrNull(result.counters.corrected_errors);
  json["uncorrected_errors"] = OrNull(result.counters.uncorrected_errors);
  return json.dump(1);
}

}  // namespace ridge
