// Texts of one update of an optimizer, which single updates and groups of them share.
#pragma once
#include <string>
#include <vector>

#include "ridge/backend/cuda/kernels/moment_text.h"

namespace ridge::cuda {

// Scalars and moments are variables of type R; `step` gives `next`, the new parameter, from param
// and grad, and changes the moments.
struct UpdateText {
  std::vector<MomentText> moments = {};
  std::vector<size_t> scalars = {};  // inputs, named by:
  std::vector<const char*> names = {};
  size_t rng = 0, apply = 0;
  std::string scalars_text = {}, step = {};
};

UpdateText AdamText(const OpCall& call);
UpdateText SgdText(const OpCall& call);

// Elements that are loaded at once, of an array of so many.
int UpdatePack(DType dtype, int64_t elements);

// An update of the pack `group` of param_in and grad_in, each of type `stored`, to param_out.
// `store`: before an element is stored.
std::string PackText(const UpdateText& update, const std::string& stored, int pack, bool has_scale,
                     const std::string& store = "");

}  // namespace ridge::cuda
