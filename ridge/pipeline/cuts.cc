// Dynamic programming over borders, twice: the least largest seconds, then the fewest bytes among
// cuts that are hardly slower.  Time is chunks * positions^2.
#include "ridge/pipeline/cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr int64_t kPlacement = 64;
constexpr double kHardlySlower = 1.05;
constexpr double kNever = std::numeric_limits<double>::infinity();

template <typename T>
void SumUp(std::vector<T>& by_position) {
  for (size_t i = 1; i < by_position.size(); ++i) by_position[i] += by_position[i - 1];
}

// By value the places of the nodes that read it; what runs anywhere reads nothing of a place.
std::vector<std::vector<Place>> ReaderPlaces(const Graph& graph, const StepPlaces& places) {
  std::vector<std::vector<Place>> readers(graph.values().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (places.nodes[n].part == StepPart::kAnywhere) continue;
    for (ValueId id : graph.nodes()[n].inputs)
      if (id != kNoValue) readers[static_cast<size_t>(id)].push_back(places.nodes[n]);
  }
  return readers;
}

}  // namespace

StageCosts::StageCosts(const Graph& micro, const Graph& update, const StepPlaces& places,
                       const std::vector<double>& node_s)
    : micro_(micro), update_(update), places_(places) {
  const auto borders = static_cast<size_t>(places.positions) + 1;
  seconds_.assign(borders, 0);
  state_.assign(borders, 0);
  kept_.resize(borders);
  forward_.assign(borders, 0);
  backward_.assign(borders, 0);
  shared_.resize(borders);
  AddNodes(node_s);
  AddVariables();
  const std::vector<std::vector<Place>> readers = ReaderPlaces(micro, places);
  for (size_t v = 0; v < readers.size(); ++v) AddCrossing(static_cast<ValueId>(v), readers[v]);
  AddKept(readers);
  ForbidBorders();
}

void StageCosts::AddNodes(const std::vector<double>& node_s) {
  for (size_t n = 0; n < node_s.size(); ++n) {
    const Place& place = places_.nodes[n];
    if (place.part != StepPart::kAnywhere)
      seconds_[static_cast<size_t>(place.position) + 1] += node_s[n];
  }
  SumUp(seconds_);
}

void StageCosts::AddVariables() {
  for (const auto& [name, position] : places_.variables) {
    const ValueId id = micro_.FindValue(name), other = update_.FindValue(name);
    const TensorType& type = id == kNoValue ? update_.type(other) : micro_.type(id);
    state_[static_cast<size_t>(position) + 1] += RoundUp(type.bytes(), kPlacement);
  }
  SumUp(state_);
}

void StageCosts::AddCrossing(ValueId id, const std::vector<Place>& readers) {
  const Node* node = micro_.producer(id);
  if (node == nullptr || readers.empty()) return;
  const Place& home = places_.Of(micro_, id);
  if (home.part == StepPart::kAnywhere) return;
  int lowest = home.position, highest = home.position;
  for (const Place& reader : readers) {
    lowest = std::min(lowest, reader.position);
    highest = std::max(highest, reader.position);
  }
  const int64_t bytes = micro_.type(id).bytes();
  for (int b = home.position + 1; b <= highest; ++b) forward_[static_cast<size_t>(b)] += bytes;
  for (int b = lowest + 1; b <= home.position; ++b) backward_[static_cast<size_t>(b)] += bytes;
}

void StageCosts::AddKept(const std::vector<std::vector<Place>>& readers) {
  const std::vector<ValueId> roots = ViewRoots(micro_);
  std::vector<std::vector<int>> keeps(readers.size());  // by value that has bytes of its own
  for (size_t v = 0; v < readers.size(); ++v) {
    const auto id = static_cast<ValueId>(v);
    const ValueInfo& root = micro_.value(roots[v]);
    const bool is_result = root.kind == ValueKind::kResult;
    if (!is_result && root.kind != ValueKind::kInput) continue;
    const Node* node = micro_.producer(id);
    const Place home = node == nullptr ? Place() : places_.Of(micro_, id);
    if (home.is_backward()) continue;
    const bool has_home = home.part == StepPart::kForward;
    for (const Place& reader : readers[v]) {
      if (!reader.is_backward()) continue;
      keeps[static_cast<size_t>(roots[v])].push_back(
          has_home ? std::max(home.position, reader.position) : reader.position);
    }
  }
  for (size_t v = 0; v < keeps.size(); ++v) {
    std::vector<int>& at = keeps[v];
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    const int64_t bytes = micro_.type(static_cast<ValueId>(v)).bytes();
    for (size_t k = 0; k < at.size(); ++k)
      kept_[static_cast<size_t>(at[k])].push_back({bytes, k == 0 ? -1 : at[k - 1]});
  }
}

void StageCosts::ForbidBorders() {
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : micro_.ValuesOfKind(kind)) {
      const std::string& name = micro_.value(id).name;
      if (!IsUpdated(micro_, name) && !IsUpdated(update_, name)) continue;
      const int home = places_.variables.at(name);
      int lowest = home, highest = home;
      for (const Node& node : micro_.nodes()) {
        if (std::find(node.inputs.begin(), node.inputs.end(), id) == node.inputs.end()) continue;
        const Place& reader = places_.Of(micro_, node.outputs[0]);
        lowest = std::min(lowest, reader.position);
        highest = std::max(highest, reader.position);
      }
      for (const GraphUpdate& update : micro_.updates()) {
        if (update.variable != id || micro_.producer(update.value) == nullptr) continue;
        const Place& writer = places_.Of(micro_, update.value);
        if (writer.part == StepPart::kAnywhere) continue;
        lowest = std::min(lowest, writer.position);
        highest = std::max(highest, writer.position);
      }
      for (int b = lowest + 1; b <= highest; ++b) shared_[static_cast<size_t>(b)] = name;
    }
  }
}

double StageCosts::Seconds(int begin, int end) const {
  return seconds_[static_cast<size_t>(end)] - seconds_[static_cast<size_t>(begin)];
}

int64_t StageCosts::StateBytes(int begin, int end) const {
  return state_[static_cast<size_t>(end)] - state_[static_cast<size_t>(begin)];
}

std::vector<int64_t> StageCosts::KeptBytes(int begin) const {
  std::vector<int64_t> by_end(static_cast<size_t>(positions()) + 1, 0);
  for (int q = begin; q < positions(); ++q) {
    int64_t& bytes = by_end[static_cast<size_t>(q) + 1];
    bytes = by_end[static_cast<size_t>(q)];
    for (const Kept& kept : kept_[static_cast<size_t>(q)])
      if (kept.earlier < begin) bytes += kept.bytes;
  }
  return by_end;
}

namespace {

class Cutting {
 public:
  Cutting(const StageCosts& costs, const CutRequest& request)
      : costs_(costs), request_(request), last_(costs.positions()) {
    for (int begin = 0; begin < last_; ++begin) kept_.push_back(costs.KeptBytes(begin));
  }

  Result<std::vector<int>> Run() {
    RIDGE_RETURN_IF_ERROR(CheckBorders());
    const auto seconds = [&](int, int begin, int end) { return costs_.Seconds(begin, end); };
    const auto bytes = [&](int, int begin, int) { return BorderBytes(begin); };
    const double slowest = Best(seconds, /*sum=*/false, kNever, nullptr);
    if (slowest == kNever) return DoesNotFit();
    std::vector<int> borders;
    Best(bytes, /*sum=*/true, slowest * kHardlySlower, &borders);
    return borders;
  }

 private:
  double BorderBytes(int border) const {
    return border == 0
               ? 0
               : static_cast<double>(costs_.ForwardBytes(border) + costs_.BackwardBytes(border));
  }
  int64_t Bytes(int chunk, int begin, int end) const {
    return costs_.StateBytes(begin, end) +
           request_.kept_micros[static_cast<size_t>(chunk)] *
               kept_[static_cast<size_t>(begin)][static_cast<size_t>(end)];
  }
  bool CanBegin(int border) const { return border == 0 || costs_.SharedAt(border).empty(); }

  // The least sum, or largest, of what(chunk, begin, end) over the chunks of a cut whose chunks
  // take at most `limit_s` and fit.  Ties go to the earliest borders.
  template <typename What>
  double Best(const What& what, bool sum, double limit_s, std::vector<int>* borders) const {
    const auto width = static_cast<size_t>(last_) + 1;
    const auto chunks = static_cast<size_t>(request_.chunks);
    // best[c][b]: of chunks c.. that begin at b; next[c][b]: where chunk c ends.
    std::vector<std::vector<double>> best(chunks + 1, std::vector<double>(width, kNever));
    std::vector<std::vector<int>> next(chunks + 1, std::vector<int>(width, -1));
    best[chunks][width - 1] = 0;
    for (size_t c = chunks; c-- > 0;) {
      for (int begin = 0; begin < last_; ++begin) {
        if (!CanBegin(begin)) continue;
        double& least = best[c][static_cast<size_t>(begin)];
        for (int end = begin + 1; end <= last_; ++end) {
          const double rest = best[c + 1][static_cast<size_t>(end)];
          if (rest == kNever || !Allowed(static_cast<int>(c), begin, end, limit_s)) continue;
          const double own = what(static_cast<int>(c), begin, end);
          const double all = sum ? own + rest : std::max(own, rest);
          if (all >= least) continue;
          least = all;
          next[c][static_cast<size_t>(begin)] = end;
        }
      }
    }
    if (borders != nullptr) {
      int at = 0;
      for (size_t c = 0; c + 1 < chunks; ++c) {
        at = next[c][static_cast<size_t>(at)];
        borders->push_back(at);
      }
    }
    return best[0][0];
  }

  bool Allowed(int chunk, int begin, int end, double limit_s) const {
    if (costs_.Seconds(begin, end) > limit_s) return false;
    return ignore_memory_ || request_.limit_bytes.empty() ||
           Bytes(chunk, begin, end) <= request_.limit_bytes[static_cast<size_t>(chunk)];
  }

  Status CheckBorders() const {
    int possible = 0;
    std::string shared;
    for (int b = 1; b < last_; ++b) {
      possible += CanBegin(b);
      if (!CanBegin(b)) shared = costs_.SharedAt(b);
    }
    if (possible + 1 >= request_.chunks) return Status();
    if (shared.empty()) {
      return InvalidArgument(
          fmt::format("pipeline: {} stages are asked for; the model has {} nodes to cut between. "
                      "hint: a smaller p, or fewer chunks a device",
                      request_.chunks, last_));
    }
    return Status(
        ErrorCode::kUnsupported,
        fmt::format("pipeline: {} stages are asked for; only {} are possible, because '{}' is "
                    "updated and read on both sides of other cuts. hint: leave tied=1 out, or a "
                    "smaller p",
                    request_.chunks, possible + 1, shared));
  }

  Status DoesNotFit() {
    ignore_memory_ = true;
    const auto bytes = [&](int chunk, int begin, int end) {
      return static_cast<double>(Bytes(chunk, begin, end));
    };
    const double least = Best(bytes, /*sum=*/false, kNever, nullptr);
    return Status(ErrorCode::kOutOfMemory,
                  fmt::format("pipeline: the largest of {} stages needs at least {} for its state "
                              "and what it keeps; {} are allowed. hint: a larger p, or a smaller "
                              "--batch",
                              request_.chunks, FormatBytes(static_cast<int64_t>(least)),
                              FormatBytes(*std::max_element(request_.limit_bytes.begin(),
                                                            request_.limit_bytes.end()))));
  }

  const StageCosts& costs_;
  const CutRequest& request_;
  const int last_;
  bool ignore_memory_ = false;
  std::vector<std::vector<int64_t>> kept_;  // by begin, then end
};

}  // namespace

Result<std::vector<int>> ChooseCuts(const StageCosts& costs, const CutRequest& request) {
  return Cutting(costs, request).Run();
}

}  // namespace ridge
