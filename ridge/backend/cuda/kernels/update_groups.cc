// adam_update_group, sgd_update_group, momentum_update_group: a block finds the update that it is
// of, and updates 256 packs of its arrays.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/update_text.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/update_group.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kGroupText = R"cuda(
RIDGE_KERNEL void update($parameters) {
  const int block = (int)blockIdx.x;
$locals  int first, pack;
  $Index groups;
$choice  const $Index group = ($Index)(block - first) * $threads + threadIdx.x;
  if (group >= groups) return;
$scalars
$body}
)cuda";

// Where `apply` is false, what does not lie where it was is copied there, a pack by a thread.
constexpr std::string_view kKeepPackText = R"cuda(
template <class T> RIDGE_FUNCTION void KeepPack(const T* from, T* to, i64 group, int pack) {
  if (from == to) return;
  for (int k = 0; k < pack; ++k) to[group * pack + k] = from[group * pack + k];
}
)cuda";

// An array of each update: a pointer of this name in the kernel.
struct Array {
  std::string name;
  bool is_output = false;
  size_t index = 0;  // of an update's own inputs, or of its outputs
};

// An update that has elements, and its blocks.
struct Part {
  size_t at = 0;
  int64_t first = 0;  // block
  int pack = 1;
  int64_t groups = 0;
};

class GroupWriter {
 public:
  GroupWriter(const UpdateGroup& group, const OpCall& call)
      : group_(group),
        call_(call),
        one_(group.UpdateOf(call, 0)),
        update_(std::string_view(group.update) == "adam_update" ? AdamText(one_) : SgdText(one_)) {
    arrays_ = {{"param_in", false, 0}, {"grad_in", false, 1}, {"param_out", true, 0}};
    for (size_t m = 0; m < update_.moments.size(); ++m) {
      arrays_.push_back({update_.moments[m].name() + "_in", false, m + 2});
      arrays_.push_back({update_.moments[m].name() + "_out", true, m + 1});
    }
    AddParts();
    AddParameters();
  }

  void Write(KernelText& text) const {
    text.source = fmt::format("typedef {} R;\n", ComputeType(dtype()));
    if (may_skip()) text.source += kKeepPackText;
    text.source += FillText(kGroupText, {{"parameters", parameters_},
                                         {"locals", LocalsText()},
                                         {"Index", IndexType(most_elements_)},
                                         {"choice", ChoiceText(0, parts_.size())},
                                         {"threads", std::to_string(kBlockThreads)},
                                         {"scalars", ScalarsText()},
                                         {"body", BodyText()}});
    text.launches = {{"update", blocks_, kBlockThreads, arguments_}};
  }

 private:
  DType dtype() const { return one_.inputs[0].dtype; }
  std::string stored() const { return StorageType(dtype()); }
  bool may_skip() const { return one_.has_input(update_.apply); }
  bool has_scale() const { return one_.has_input(update_.apply + 1); }

  void AddParts() {
    for (size_t at = 0; at < group_.CountOf(call_); ++at) {
      const int64_t elements = call_.inputs[group_.OwnInput(at, 0)].elements();
      if (elements == 0) continue;
      const int pack = UpdatePack(dtype(), elements);
      parts_.push_back({at, blocks_, pack, elements / pack});
      blocks_ += CeilDiv(elements / pack, int64_t{kBlockThreads});
      most_elements_ = std::max(most_elements_, elements);
    }
  }

  void AddParameters() {
    for (size_t i = 0; i < update_.scalars.size(); ++i)
      AddShared(update_.scalars[i], update_.names[i]);
    if (may_skip()) AddShared(update_.apply, "apply");
    if (has_scale()) AddShared(update_.apply + 1, "grad_scale");
    for (const Part& part : parts_) {
      for (const Array& array : arrays_) {
        parameters_ += fmt::format(", {}{}_{}", PointerText(array), array.name, part.at);
        arguments_.push_back(ArgumentOf(array, part.at));
      }
    }
  }

  // `input` is one of a single update.
  void AddShared(size_t input, const char* name) {
    const auto place = std::find(group_.shared.begin(), group_.shared.end(), input);
    parameters_ += fmt::format("{}const {}* {}_in", parameters_.empty() ? "" : ", ",
                               StorageType(one_.inputs[input].dtype), name);
    arguments_.push_back(Argument::Input(static_cast<int>(place - group_.shared.begin())));
  }

  std::string PointerText(const Array& array) const {
    return (array.is_output ? "" : "const ") + stored() + "* ";
  }

  Argument ArgumentOf(const Array& array, size_t at) const {
    return array.is_output ? Argument::Output(static_cast<int>(group_.Output(at, array.index)))
                           : Argument::Input(static_cast<int>(group_.OwnInput(at, array.index)));
  }

  std::string LocalsText() const {
    std::string text;
    for (const Array& array : arrays_)
      text += fmt::format("  {}{};\n", PointerText(array), array.name);
    return text;
  }

  // Of the parts [begin, end), by halves.
  std::string ChoiceText(size_t begin, size_t end) const {
    if (end - begin == 1) return TakeText(parts_[begin]);
    const size_t middle = begin + (end - begin) / 2;
    return fmt::format("  if (block < {}) {{\n{}  }} else {{\n{}  }}\n", parts_[middle].first,
                       ChoiceText(begin, middle), ChoiceText(middle, end));
  }

  std::string TakeText(const Part& part) const {
    std::string text = "  ";
    for (const Array& array : arrays_) text += fmt::format("{0} = {0}_{1}; ", array.name, part.at);
    return text +
           fmt::format("first = {}; pack = {}; groups = {};\n", part.first, part.pack, part.groups);
  }

  std::string ScalarsText() const {
    std::string text;
    if (may_skip()) {
      text = "  if (!(bool)Load(apply_in, 0)) {\n    KeepPack(param_in, param_out, group, pack);\n";
      for (const MomentText& m : update_.moments)
        text += fmt::format("    KeepPack({0}_in, {0}_out, group, pack);\n", m.name());
      text += "    return;\n  }\n";
    }
    if (has_scale()) text += "  const R grad_scale = (R)Load(grad_scale_in, 0);\n";
    return text + update_.scalars_text;
  }

  // For each width of packs.
  std::string BodyText() const {
    std::set<int> packs;
    for (const Part& part : parts_) packs.insert(part.pack);
    std::string text;
    for (const int pack : packs) {
      text += fmt::format("  if (pack == {}) {{\n{}\n  }}\n", pack,
                          PackText(update_, stored(), pack, has_scale()));
    }
    return text;
  }

  const UpdateGroup& group_;
  const OpCall& call_;
  const OpCall one_;  // the first update
  const UpdateText update_;
  std::vector<Array> arrays_;
  std::vector<Part> parts_;
  int64_t blocks_ = 0, most_elements_ = 0;
  std::string parameters_;
  std::vector<Argument> arguments_;
};

const char* WriteGroup(const OpDef& op, const OpCall& call, KernelText& text) {
  GroupWriter(GroupOf(op), call).Write(text);
  return nullptr;
}

}  // namespace

TextKernelDef AdamGroupTextKernel() {
  return {.name = std::string("cuda.adam") + kGroupKernelSuffix,
          .ops = {"adam_update_group"},
          .write = WriteGroup};
}

TextKernelDef SgdGroupTextKernel() {
  return {.name = std::string("cuda.sgd") + kGroupKernelSuffix,
          .ops = {"sgd_update_group", "momentum_update_group"},
          .write = WriteGroup};
}

}  // namespace ridge::cuda
