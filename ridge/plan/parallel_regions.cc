// Starting at each node, the search extends a candidate region while it has at least two groups
// (union-find over the bytes that nodes touch); the end that saves most makes a parallel region.
// Groups are assigned to streams longest first, each to the stream that would finish it first; ties
// go to the first stream.  A read from another core's cache is charged, since it would cost a group
// of small nodes its gain: so groups stay on the stream that touched their bytes last, within a
// step and across steps.
#include "ridge/plan/parallel_regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ridge/plan/cost/times.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr size_t kMostNodes = 256;  // of a region
constexpr size_t kPatience = 16;    // nodes of a single group that end a search
constexpr double kWorthRegion_s = 2e-6;
constexpr double kWorthStep = 0.95;  // of the step's predicted time

// A node's kernel and time on one thread, against its time on all.
struct SerialKernel {
  std::optional<KernelChoice> choice;  // none: it cannot
  double team_s = 0;                   // on all threads
  double serial_s = 0;                 // on one
};

// Memory ids that a node reads (false) or writes (true).
using Touched = std::vector<std::pair<int64_t, bool>>;

// Which nodes of a region have to stay on one stream.
class Groups {
 public:
  explicit Groups(size_t first) : first_(first) {}

  size_t Of(size_t node) {
    size_t i = node - first_;
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  size_t count() const { return count_; }

  // The groups with which a node shares bytes that it or they write.
  std::set<size_t> Met(const Touched& touched) {
    std::set<size_t> met;
    for (const auto& [bytes, written] : touched) {
      const auto known = users_.find(bytes);
      if (known == users_.end()) continue;
      const Users& users = known->second;
      if (users.writer) met.insert(Of(*users.writer));
      if (!written) continue;
      for (const size_t reader : users.readers) met.insert(Of(reader));
    }
    return met;
  }

  // Nodes are added one after the other.
  void Add(size_t node, const Touched& touched, const std::set<size_t>& met) {
    parent_.push_back(node - first_);
    count_ = count_ + 1 - met.size();
    for (const size_t group : met) parent_[group] = node - first_;
    for (const auto& [bytes, written] : touched) {
      Users& users = users_[bytes];
      if (written) {
        users.writer = node;
      } else {
        users.readers.push_back(node);
      }
    }
  }

 private:
  struct Users {
    std::optional<size_t> writer;  // the last one
    std::vector<size_t> readers;
  };
  const size_t first_;
  std::vector<size_t> parent_;
  size_t count_ = 0;
  std::map<int64_t, Users> users_;
};

class Streams {
 public:
  // `region`: without parts.
  Streams(KernelQuery& kernels, const InterOp& how, StepPlan& step, Region& region)
      : kernels_(kernels),
        facts_(kernels.nominal().facts()),
        costs_(facts_.inter_op),
        how_(how),
        step_(step),
        region_(region),
        begin_(static_cast<size_t>(region.first)),
        end_(static_cast<size_t>(region.end)),
        uses_(step),
        known_(step.nodes.size()) {
    FindLoss();
  }

  void Run() {
    double gain_s = 0;
    std::vector<Found> found;
    for (size_t first = begin_; first < end_;) {
      Found best = Search(first);
      first = best.end > first ? best.end : first + 1;
      if (best.gain_s <= 0) continue;
      gain_s += best.gain_s;
      NoteStreams(best);
      found.push_back(std::move(best));
    }
    if (!how_.always && gain_s < (1 - kWorthStep) * WholeSeconds()) return;
    Apply(found);
  }

 private:
  struct Found {
    size_t first = 0, end = 0;  // end == first: none
    double gain_s = 0;
    std::vector<int> stream;  // by node
  };

  Found Search(size_t first) {
    Found best{first, first, 0, {}};
    Groups groups(first);
    size_t in_one_group = 0, with_choice = first;
    int64_t written = 0;
    size_t n = first;
    for (const size_t last = LastEnd(first); n < last && IsSmall(n); ++n) {
      const Touched touched = TouchedBy(n);
      const std::set<size_t> met = groups.Met(touched);
      if (met.size() > 1) Consider(first, n, groups, best);  // before groups become one
      written += WrittenBytes(n);
      if (written > facts_.last_cache_bytes) break;
      groups.Add(n, touched, met);
      in_one_group = groups.count() > 1 ? 0 : in_one_group + 1;
      if (in_one_group > kPatience) return best;
      if (groups.count() == 1) continue;
      // Queries one-thread kernels only when there are two groups.
      for (; with_choice < n; ++with_choice) {
        if (!SerialOf(with_choice).choice) return best;
      }
      if (!SerialOf(n).choice) break;
    }
    Consider(first, n, groups, best);
    return best;
  }

  // No region spans the loss: when that is not finite, later nodes must not have run.
  size_t LastEnd(size_t first) const {
    const size_t end = std::min(end_, first + kMostNodes);
    return first < loss_end_ ? std::min(end, loss_end_) : end;
  }

  void FindLoss() {
    const auto loss = step_.outputs.find("loss");
    if (loss != step_.outputs.end())
      loss_end_ = static_cast<size_t>(uses_.ProducerOf(loss->second) + 1);
  }

  bool IsSmall(size_t n) const {
    const PlannedNode& node = step_.nodes[n];
    return node.cost.bytes_read + node.cost.bytes_written <= facts_.core_cache_bytes &&
           node.choice.workspace_bytes <= facts_.core_cache_bytes;
  }

  int64_t WrittenBytes(size_t n) const {
    const PlannedNode& node = step_.nodes[n];
    int64_t bytes = node.choice.workspace_bytes;
    for (const int value : node.outputs)
      bytes += step_.values[static_cast<size_t>(value)].size_bytes;
    return bytes;
  }

  Touched TouchedBy(size_t n) const {
    Touched touched;
    const auto add = [&](int value, bool written) {
      const int root = uses_.bytes().RootOf(value);
      const PlannedValue& bytes = step_.values[static_cast<size_t>(root)];
      touched.emplace_back(
          bytes.persistent ? -1 - static_cast<int64_t>(bytes.persistent_index) : int64_t{root},
          written);
    };
    const PlannedNode& node = step_.nodes[n];
    for (const int value : node.inputs) {
      if (value >= 0) add(value, false);
    }
    for (const int value : node.outputs) add(value, true);
    return touched;
  }

  // Whether [first, end) is the best region yet.
  void Consider(size_t first, size_t end, Groups& groups, Found& best) {
    if (groups.count() < 2) return;
    double team_s = 0;
    std::map<size_t, GroupWork> work;  // by group
    for (size_t n = first; n < end; ++n) {
      const SerialKernel& node = SerialOf(n);
      team_s += node.team_s;
      GroupWork& group = work[groups.Of(n)];
      group.seconds += node.serial_s;
      AddBytesAtHome(n, group);
    }
    std::map<size_t, int> stream_of;
    const double gain_s = team_s - AssignStreams(work, stream_of) - costs_.region_s;
    if (gain_s < kWorthRegion_s || gain_s <= best.gain_s) return;
    best = {first, end, gain_s, {}};
    for (size_t n = first; n < end; ++n) best.stream.push_back(stream_of[groups.Of(n)]);
  }

  struct GroupWork {
    double seconds = 0;
    std::map<int, int64_t> bytes_at;  // by the stream that has them
  };

  void AddBytesAtHome(size_t n, GroupWork& work) const {
    for (const auto& [bytes, written] : TouchedBy(n)) {
      const auto home = home_.find(bytes);
      if (home != home_.end()) work.bytes_at[home->second.stream] += home->second.size_bytes;
    }
  }

  void NoteStreams(const Found& found) {
    for (size_t n = found.first; n < found.end; ++n) {
      const PlannedNode& node = step_.nodes[n];
      const Touched touched = TouchedBy(n);
      size_t at = 0;
      const auto note = [&](int value) {
        home_[touched[at++].first] = {found.stream[n - found.first],
                                      step_.values[static_cast<size_t>(value)].size_bytes};
      };
      for (const int value : node.inputs) {
        if (value >= 0) note(value);
      }
      for (const int value : node.outputs) note(value);
    }
  }

  double SecondsOn(int stream, const GroupWork& work) const {
    int64_t elsewhere = 0;
    for (const auto& [home, bytes] : work.bytes_at) elsewhere += home == stream ? 0 : bytes;
    if (elsewhere == 0) return work.seconds;
    return work.seconds + static_cast<double>(elsewhere) / costs_.core_to_core_bytes_per_s;
  }

  // Returns the seconds of the longest stream.
  double AssignStreams(const std::map<size_t, GroupWork>& groups,
                       std::map<size_t, int>& stream_of) const {
    std::vector<std::pair<size_t, const GroupWork*>> order;
    for (const auto& [group, work] : groups) order.emplace_back(group, &work);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.second->seconds > b.second->seconds;
    });
    std::vector<double> done_s(static_cast<size_t>(how_.streams), 0);
    for (const auto& [group, work] : order) {
      int best = 0;
      for (int stream = 1; stream < how_.streams; ++stream) {
        if (done_s[static_cast<size_t>(stream)] + SecondsOn(stream, *work) <
            done_s[static_cast<size_t>(best)] + SecondsOn(best, *work))
          best = stream;
      }
      done_s[static_cast<size_t>(best)] += SecondsOn(best, *work);
      stream_of[group] = best;
    }
    return *std::max_element(done_s.begin(), done_s.end());
  }

  const SerialKernel& SerialOf(size_t n) {
    std::optional<SerialKernel>& known = known_[n];
    if (known) return *known;
    known.emplace();
    const PlannedNode& node = step_.nodes[n];
    known->choice = SerialChoice(node);
    if (!known->choice) return *known;
    known->serial_s = SerialSeconds(node, *known->choice) + costs_.start_s;
    const bool same = known->choice->key == node.choice.key;
    known->team_s = same ? known->serial_s : TeamSeconds(node);
    return *known;
  }

  // The cheapest candidate with the layouts that the plan has.
  std::optional<KernelChoice> SerialChoice(const PlannedNode& node) {
    if (node.choice.kernel == "copy") return node.choice;
    if (facts_.threads == 1) return node.choice;
    if (node.def == nullptr) {
      return kernels_.SerialReorder(node.call.inputs[0], node.choice.input_layouts[0],
                                    node.choice.output_layouts[0]);
    }
    std::optional<KernelChoice> best;
    double best_s = 0;
    const KernelCandidates candidates =
        kernels_.SerialCandidates(*node.def, node.call, node.choice.input_layouts);
    for (const KernelChoice& choice : candidates.choices) {
      if (choice.input_layouts != node.choice.input_layouts ||
          choice.output_layouts != node.choice.output_layouts || choice.kernel == "reference")
        continue;
      const double seconds = SerialSeconds(node, choice);
      if (best && seconds >= best_s) continue;
      best = choice;
      best_s = seconds;
    }
    return best;
  }

  // Without the start.
  double SerialSeconds(const PlannedNode& node, KernelChoice choice) const {
    choice.one_thread = true;
    return kernels_.nominal().Seconds(WorkOf(node), choice) - facts_.launch_s;
  }

  double TeamSeconds(const PlannedNode& node) const {
    const double seconds = kernels_.nominal().Seconds(WorkOf(node), node.choice);
    return seconds - facts_.launch_s + costs_.start_s + costs_.region_s;
  }

  double WholeSeconds() const {
    double seconds = 0;
    for (size_t n = begin_; n < end_; ++n) seconds += TeamSeconds(step_.nodes[n]);
    return seconds;
  }

  void Apply(const std::vector<Found>& all) {
    int at = region_.first;
    for (const Found& found : all) {
      if (at < static_cast<int>(found.first))
        region_.parts.push_back(Region::Sequence(at, static_cast<int>(found.first)));
      for (size_t n = found.first; n < found.end; ++n) step_.nodes[n].choice = *SerialOf(n).choice;
      region_.parts.push_back(FormRegion(found));
      at = static_cast<int>(found.end);
    }
    if (at < region_.end && at > region_.first)
      region_.parts.push_back(Region::Sequence(at, region_.end));
  }

  // Puts the nodes of each stream behind those of the one before.
  Region FormRegion(const Found& found) {
    const int streams = 1 + *std::max_element(found.stream.begin(), found.stream.end());
    Region parallel = Region::Sequence(static_cast<int>(found.first), static_cast<int>(found.end));
    parallel.kind = Region::Kind::kParallel;
    std::vector<PlannedNode> nodes;
    for (int stream = 0; stream < streams; ++stream) {
      const int first = parallel.first + static_cast<int>(nodes.size());
      for (size_t n = found.first; n < found.end; ++n) {
        if (found.stream[n - found.first] == stream) nodes.push_back(std::move(step_.nodes[n]));
      }
      const int end = parallel.first + static_cast<int>(nodes.size());
      parallel.parts.push_back(Region::Sequence(first, end));
    }
    std::move(nodes.begin(), nodes.end(),
              step_.nodes.begin() + static_cast<std::ptrdiff_t>(found.first));
    return parallel;
  }

  KernelQuery& kernels_;
  const DeviceFacts& facts_;
  const InterOpCosts& costs_;
  const InterOp how_;
  StepPlan& step_;
  Region& region_;
  const size_t begin_, end_;
  struct Home {
    int stream = 0;
    int64_t size_bytes = 0;
  };
  std::map<int64_t, Home> home_;  // of the bytes that parallel regions touched
  const StepUses uses_;
  std::vector<std::optional<SerialKernel>> known_;  // by node
  size_t loss_end_ = 0;                             // after the node that makes the loss
};

template <typename Visit>
void ForEachSequence(Region& region, const Visit& visit) {
  if (region.parts.empty()) return visit(region);
  for (Region& part : region.parts) ForEachSequence(part, visit);
}

}  // namespace

void FormParallelRegions(KernelQuery& kernels, const InterOp& how, StepPlan& step) {
  if (how.streams <= 1) return;
  ForEachSequence(step.body,
                  [&](Region& sequence) { Streams(kernels, how, step, sequence).Run(); });
}

}  // namespace ridge
