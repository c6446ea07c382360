// Independent of placement.cc: live ranges are computed here, from the nodes.  Both ask uses.h
// which values share bytes, which uses_test.cc compares with a search.
#include "ridge/plan/memory/check_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ridge/plan/tree_sums.h"
#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr int kNothing = -1;

struct Piece {
  int64_t offset_bytes, size_bytes;
  LiveRange live;
  std::string name;
  bool on_host;
};

// A sweep over time: each new piece is compared with its neighbours among the live ones.
Status CheckApart(const std::string& plan, const std::vector<Piece>& pieces) {
  std::vector<std::pair<int, size_t>> begins, ends;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].size_bytes == 0 || pieces[i].live.last < pieces[i].live.first) continue;
    begins.emplace_back(pieces[i].live.first, i);
    ends.emplace_back(pieces[i].live.last, i);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  std::map<int64_t, size_t> alive;  // by offset
  size_t ended = 0;
  for (const auto& [now, i] : begins) {
    for (; ends[ended].first < now; ++ended) alive.erase(pieces[ends[ended].second].offset_bytes);
    const Piece& piece = pieces[i];
    auto other = alive.lower_bound(piece.offset_bytes + piece.size_bytes);
    if (other != alive.begin()) {
      const Piece& below = pieces[(--other)->second];
      if (below.offset_bytes + below.size_bytes > piece.offset_bytes) {
        return Status(ErrorCode::kInternal,
                      fmt::format("plan {}: {} and {} live at the same time and share bytes", plan,
                                  below.name, piece.name));
      }
    }
    alive.emplace(piece.offset_bytes, i);
  }
  return Status();
}

// Memory ids: values that share bytes on purpose have one id, their root's index; the ids of
// variables follow.
class StepCheck {
 public:
  StepCheck(const Program& program, const StepPlan& step)
      : program_(program),
        step_(step),
        uses_(step),
        variables_(step, uses_, program.persistent.size()),
        version_(ShownValues(step, uses_)),
        places_(NodePlaces(step)),
        live_(step.values.size() + program.persistent.size(),
              {static_cast<int>(step.nodes.size()), -1}) {
    for (int& shown : version_) {
      const PlannedValue& value = ValueAt(shown);
      if (value.persistent && value.shares_with < 0 && uses_.ProducerOf(shown) < 0)
        shown =
            variables_.Before(value.persistent_index);  // an input may be read whole and in slices
    }
  }

  Status Run() {
    RIDGE_RETURN_IF_ERROR(CheckTree());
    RIDGE_RETURN_IF_ERROR(CheckHomes());
    FindLives();
    RIDGE_RETURN_IF_ERROR(CheckRegions());
    RIDGE_RETURN_IF_ERROR(CheckBlock());
    RIDGE_RETURN_IF_ERROR(CheckApart(step_.name, Pieces()));
    for (int64_t slice = 0; slice < std::min<int64_t>(step_.slices, 3); ++slice)
      RIDGE_RETURN_IF_ERROR(Walk(slice, slice + 1 == std::min<int64_t>(step_.slices, 3)));
    return CheckStreams();
  }

 private:
  const PlannedValue& ValueAt(int value) const { return step_.values[static_cast<size_t>(value)]; }

  Status Wrong(const std::string& what) const {
    return Status(ErrorCode::kInternal, fmt::format("plan {}: {}", step_.name, what));
  }

  size_t Variable(int persistent_index) const {
    return step_.values.size() + static_cast<size_t>(persistent_index);
  }

  const std::string& VariableName(int persistent_index) const {
    return program_.persistent[static_cast<size_t>(persistent_index)].name;
  }

  size_t MemoryOf(int value, int64_t slice) const {
    const PlannedValue& planned = ValueAt(value);
    if (IsPeeled(step_, slice)) {
      if (const int sum = FirstWrittenIn(step_, value); sum >= 0) return Variable(sum);
    }
    return planned.persistent ? Variable(planned.persistent_index)
                              : static_cast<size_t>(uses_.bytes().RootOf(value));
  }

  // A node of a parallel region may run at any time during the region.
  LiveRange Span(size_t n) const { return {places_[n].first, places_[n].last}; }

  // A node of the host touches nothing but the host's memory.
  Status CheckHomes() const {
    for (const PlannedNode& node : step_.nodes) {
      if (!node.on_host) continue;
      const auto is_there = [&](int value) { return value < 0 || ValueAt(value).on_host; };
      if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_there) ||
          !std::all_of(node.outputs.begin(), node.outputs.end(), is_there))
        return Wrong("'" + node.name + "' runs on the host and touches the device's memory");
    }
    return Status();
  }

  // Parts cover their region in order; the step's loop runs once for each slice.
  Status CheckTree() const {
    bool covers = step_.body.first == 0 && step_.body.end == static_cast<int>(step_.nodes.size());
    int64_t trips = 1;
    ForEachRegion(step_.body, [&](const Region& region) {
      trips *= region.trips;
      int at = region.first;
      for (const Region& part : region.parts) {
        covers = covers && part.first == at && part.end >= part.first;
        at = part.end;
      }
      covers = covers && (region.parts.empty() || at == region.end);
    });
    if (!covers) return Wrong("a region's parts do not cover its nodes");
    return trips == step_.slices ? Status() : Wrong("the loop does not run once for each slice");
  }

  void FindLives() {
    const auto keep = [&](int value, LiveRange span) {
      LiveRange& live = live_[MemoryOf(value, 1)];
      live = {std::min(live.first, span.first), std::max(live.last, span.last)};
    };
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      for (const int value : step_.nodes[n].inputs) {
        if (value >= 0) keep(value, Span(n));
      }
      for (const int value : step_.nodes[n].outputs) keep(value, Span(n));
    }
    const int last = std::max(0, static_cast<int>(step_.nodes.size()) - 1);
    for (const auto& [name, value] : step_.outputs)
      keep(value, {ValueAt(value).slice_bytes > 0 ? 0 : last, last});
  }

  bool IsScratchRoot(size_t v) const {
    return !step_.values[v].persistent &&
           uses_.bytes().RootOf(static_cast<int>(v)) == static_cast<int>(v);
  }

  std::vector<Piece> Pieces() const {
    std::vector<Piece> pieces;
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const PlannedValue& value = step_.values[v];
      if (IsScratchRoot(v))
        pieces.push_back({value.offset_bytes, value.size_bytes, live_[v], "'" + value.name + "'",
                          value.on_host});
    }
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      const PlannedNode& node = step_.nodes[n];
      if (node.choice.workspace_bytes > 0) {
        pieces.push_back({node.workspace_offset, node.choice.workspace_bytes, Span(n),
                          "the workspace of '" + node.name + "'", node.on_host});
      }
    }
    return pieces;
  }

  // Every value is within its variable or the scratch region, at its root's offset.
  Status CheckRegions() const {
    for (const Piece& piece : Pieces()) {
      if (piece.live.last < piece.live.first) continue;
      const int64_t begin =
          piece.on_host ? program_.host_scratch_offset : program_.persistent_bytes;
      const int64_t end = piece.on_host ? program_.host_bytes : program_.arena_bytes;
      const bool inside =
          piece.offset_bytes >= begin && piece.offset_bytes + piece.size_bytes <= end;
      if (!inside || piece.offset_bytes % program_.memory.alignment_bytes != 0)
        return Wrong(piece.name + " lies outside the scratch region or is not aligned");
    }
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const PlannedValue& value = step_.values[v];
      const PlannedValue& root = ValueAt(uses_.bytes().RootOf(static_cast<int>(v)));
      const int64_t further = value.persistent ? value.slice_bytes * (step_.slices - 1) : 0;
      const int64_t bytes = value.size_bytes + further;
      const int64_t room = value.persistent ? ValueOf(value).size_bytes : root.size_bytes;
      const int64_t offset = value.persistent ? ValueOf(value).offset_bytes : root.offset_bytes;
      if (bytes > room ||
          (live_[MemoryOf(static_cast<int>(v), 1)].last >= 0 && value.offset_bytes != offset))
        return Wrong("'" + value.name + "' does not lie in the bytes that it is said to share");
    }
    return Status();
  }

  // The sums of a tree lie side by side, and its further blocks have room for as many bytes.
  Status CheckBlock() const {
    if (!step_.tree) return Status();
    const TreePlan& tree = *step_.tree;
    int64_t end = PersistentAt(step_.sums.front()).offset_bytes;
    for (const int sum : step_.sums) {
      if (PersistentAt(sum).offset_bytes != end)
        return Wrong("'" + VariableName(sum) + "' does not lie beside the sum before it");
      end += program_.memory.Aligned(PersistentAt(sum).size_bytes);
    }
    const int64_t bytes = end - PersistentAt(step_.sums.front()).offset_bytes;
    const int64_t further = (PositionsOf(tree.folds) - 1) * bytes;
    const bool has_room = further == 0 || PersistentAt(tree.further).size_bytes >= further;
    return bytes == tree.block_bytes && has_room ? Status() : Wrong("a tree's blocks lack room");
  }

  const PersistentValue& PersistentAt(int index) const {
    return program_.persistent[static_cast<size_t>(index)];
  }

  const PersistentValue& ValueOf(const PlannedValue& value) const {
    return program_.persistent[static_cast<size_t>(value.persistent_index)];
  }

  // A slice may read only variables of the previous one; the first slice no sums that its nodes
  // write, and those of a tree no sums.
  std::vector<int> Before(int64_t slice) const {
    std::vector<int> contents(step_.values.size(), kNothing);
    for (size_t i = 0; i < program_.persistent.size(); ++i)
      contents.push_back(variables_.Before(static_cast<int>(i)));
    if (!IsPeeled(step_, slice)) return contents;
    for (const auto& [value, sum] : MicroBatchLoop(step_)->peeled.written_in)
      contents[Variable(sum)] = kNothing;
    if (!step_.tree) return contents;
    for (const int sum : step_.sums) contents[Variable(sum)] = kNothing;
    return contents;
  }

  Status Walk(int64_t slice, bool last) const {
    std::vector<int> contents = Before(slice);
    std::map<size_t, int> sums;  // what a sum has to hold after the first slice
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      const PlannedNode& node = step_.nodes[n];
      if (!last && !places_[n].in_loop) continue;
      if (places_[n].skips_first && IsPeeled(step_, slice)) {
        RIDGE_RETURN_IF_ERROR(NoteSum(node, sums));
        continue;
      }
      if (IsTreeNode(node)) {
        RIDGE_RETURN_IF_ERROR(CheckSums(sums, contents));
        sums.clear();
      }
      RIDGE_RETURN_IF_ERROR(CheckReads(node, slice, contents));
      RIDGE_RETURN_IF_ERROR(CheckWrites(node, slice));
      for (const int value : node.outputs) contents[MemoryOf(value, slice)] = value;
    }
    RIDGE_RETURN_IF_ERROR(CheckSums(sums, contents));
    for (const int sum : step_.sums) {
      const int there = contents[Variable(sum)];
      if ((step_.slices > 1 || step_.tree) &&
          (there == kNothing || there == variables_.Before(sum)))
        return Wrong(fmt::format("slice {} adds nothing to '{}'", slice, VariableName(sum)));
    }
    if (!last) return Status();
    for (const auto& [name, value] : step_.outputs) {
      if (contents[MemoryOf(value, slice)] != version_[static_cast<size_t>(value)])
        return Wrong("output '" + name + "' is written over");
    }
    return Status();
  }

  Status CheckSums(const std::map<size_t, int>& sums, const std::vector<int>& contents) const {
    for (const auto& [sum, value] : sums) {
      if (contents[sum] != value)
        return Wrong("the first slice leaves another value than '" + ValueAt(value).name +
                     "' in a sum");
    }
    return Status();
  }

  // Notes the addend that the producer writes into the sum when the first slice skips `node`.
  Status NoteSum(const PlannedNode& node, std::map<size_t, int>& sums) const {
    const int sum = ValueAt(node.outputs[0]).persistent_index;
    for (const int value : node.inputs) {
      if (value >= 0 && sum >= 0 && FirstWrittenIn(step_, value) == sum) {
        sums[Variable(sum)] = version_[static_cast<size_t>(value)];
        return Status();
      }
    }
    return Wrong("'" + node.name + "' is left out of the first slice");
  }

  Status CheckReads(const PlannedNode& node, int64_t slice,
                    const std::vector<int>& contents) const {
    for (const int value : node.inputs) {
      if (value < 0) continue;
      const int there = contents[MemoryOf(value, slice)];
      if (there == version_[static_cast<size_t>(value)]) continue;
      return Wrong(fmt::format("'{}' reads '{}', where {} lies", node.name, ValueAt(value).name,
                               there == kNothing ? "nothing" : "'" + ValueAt(there).name + "'"));
    }
    return Status();
  }

  // An output may share bytes with an input only if the kernel may overwrite that input, and with
  // no other output.
  Status CheckWrites(const PlannedNode& node, int64_t slice) const {
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const size_t memory = MemoryOf(node.outputs[o], slice);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] < 0 || MemoryOf(node.inputs[i], slice) != memory) continue;
        const std::pair<int, int> pair(static_cast<int>(o), static_cast<int>(i));
        const auto& allowed = node.choice.in_place;
        if (std::find(allowed.begin(), allowed.end(), pair) == allowed.end())
          return Wrong(fmt::format("'{}' writes over '{}', which its kernel must not", node.name,
                                   ValueAt(node.inputs[i]).name));
      }
      for (size_t other = 0; other < o; ++other) {
        if (MemoryOf(node.outputs[other], slice) == memory)
          return Wrong("'" + node.name + "' writes two results into the same bytes");
      }
    }
    return Status();
  }

  // In the first slice, whose addends lie in the sums, and in the others.
  Status CheckStreams() const {
    for (int64_t slice = 0; slice < std::min<int64_t>(step_.slices, 2); ++slice)
      RIDGE_RETURN_IF_ERROR(CheckStreams(slice));
    return Status();
  }

  Status CheckStreams(int64_t slice) const {
    struct Use {
      int parallel = -1, stream = 0;
      bool written = false, shared = false;
    };
    std::vector<Use> uses(live_.size());
    const auto touch = [&](const NodePlace& at, int value, bool written) {
      Use& use = uses[MemoryOf(value, slice)];
      if (use.parallel != at.parallel) use = {at.parallel, at.stream, false, false};
      use.written = use.written || written;
      use.shared = use.shared || use.stream != at.stream;
      return !(use.written && use.shared);
    };
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      const PlannedNode& node = step_.nodes[n];
      const NodePlace& at = places_[n];
      if (at.parallel < 0 || (at.skips_first && IsPeeled(step_, slice))) continue;
      bool apart = true;
      for (const int value : node.inputs) apart = apart && (value < 0 || touch(at, value, false));
      for (const int value : node.outputs) apart = apart && touch(at, value, true);
      if (!apart)
        return Wrong("'" + node.name + "' touches bytes that another stream writes or reads");
    }
    return Status();
  }

  const Program& program_;
  const StepPlan& step_;
  const StepUses uses_;
  const VariableUses variables_;
  std::vector<int> version_;       // by value: itself, or the one that it is a view of
  std::vector<NodePlace> places_;  // by node
  std::vector<LiveRange> live_;    // by memory
};

Status CheckVariables(const Program& program) {
  std::vector<const PersistentValue*> by_offset;
  for (const PersistentValue& value : program.persistent) by_offset.push_back(&value);
  std::stable_sort(by_offset.begin(), by_offset.end(),
                   [](const auto* a, const auto* b) { return a->offset_bytes < b->offset_bytes; });
  int64_t end = 0;
  for (const PersistentValue* value : by_offset) {
    if (value->on_host != (value->offset_bytes < program.host_bytes))
      return Status(ErrorCode::kInternal, "plan: '" + value->name + "' lies in the other memory");
    if (value->offset_bytes < end || value->offset_bytes % program.memory.alignment_bytes != 0)
      return Status(ErrorCode::kInternal,
                    "plan: '" + value->name + "' shares bytes or is not aligned");
    end = value->offset_bytes + value->size_bytes;
  }
  if (end <= program.persistent_bytes) return Status();
  return Status(ErrorCode::kInternal, "plan: variables do not fit their region");
}

}  // namespace

Status CheckPlacement(const Program& program) {
  RIDGE_RETURN_IF_ERROR(CheckVariables(program));
  for (const StepPlan& step : program.steps) RIDGE_RETURN_IF_ERROR(StepCheck(program, step).Run());
  return Status();
}

}  // namespace ridge
