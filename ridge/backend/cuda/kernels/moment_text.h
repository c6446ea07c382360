// Texts of an optimizer's moments in their three forms (graph/ops/shared/moments.h).
#pragma once
#include <string>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/moments.h"

namespace ridge::cuda {

// The moment `name`, a variable of type R in the kernel, its arrays `name`_in and `name`_out, and
// of kCoded `name`_absmax_in and `name`_absmax_out.
class MomentText {
 public:
  MomentText(const OpCall& call, const MomentSlots& slots, std::string name);

  const std::string& name() const { return name_; }
  bool coded() const { return form_ == MomentForm::kCoded; }
  bool rounded() const { return form_ == MomentForm::kRounded; }
  // "const u8* m_in, u8* m_out, ..", and what a launch passes.
  std::string Parameters() const;
  void AddArguments(std::vector<Argument>& arguments) const;

  // Before the kernel.  REQUIRES: a type R before it.
  std::string Functions() const;
  // kWhole and kRounded: packs of `pack` elements `name`_p and `name`_q of `group`; element k.
  std::string LoadPackText(int pack) const;
  std::string ElementText() const;       // R name = ..
  std::string StoreElementText() const;  // kRounded: by `key`, element `e`
  std::string StorePackText() const;
  // Keep(..) of each of its arrays, for a parameter of so many elements.
  std::string KeepText(int64_t elements) const;
  // kCoded: element `e` of `block`, where `counts`.
  std::string LoadCodeText() const;
  std::string StoreCodeText() const;

 private:
  std::string Fill(std::string_view text) const;

  MomentForm form_;
  MomentSlots slots_;
  std::string name_, stored_, absmax_;
};

// Defines ElementKey, `ElementKeyOf(rng)` and RoundAtRandom for kRounded, drawn by `stream`.
std::string RoundingText(int64_t stream);

}  // namespace ridge::cuda
