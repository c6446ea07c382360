// What the scans along one axis share (cumsum, cumprod, cumprod_grad).
//
// Attributes: axis; exclusive (1: an element's own value does not count); reverse (1: from the
// end).
#pragma once
#include "ridge/graph/op_def.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge {

AttrMap ScanAttrs();  // the defaults

Result<std::vector<TensorType>> InferScan(const OpCall& call);

// One flop an element.
Cost ScanCost(const OpCall& call);

// The lines of an array along the axis of a scan, in the order in which it walks them.
class ScanLines {
 public:
  explicit ScanLines(const OpCall& call);

  int64_t count() const { return view_.outer * view_.inner; }
  int64_t length() const { return view_.extent; }
  bool exclusive() const { return exclusive_; }
  // Element k of a line, counted from where the scan starts.
  int64_t At(int64_t line, int64_t k) const {
    return view_.Index(line / view_.inner, reverse_ ? view_.extent - 1 - k : k, line % view_.inner);
  }

 private:
  AxisView view_;
  bool exclusive_, reverse_;
};

// out = the scan of in by `combine`, from `start`.
template <typename Combine>
void Scan(const OpCall& call, const double* in, double* out, double start, Combine combine) {
  const ScanLines lines(call);
  for (int64_t line = 0; line < lines.count(); ++line) {
    double value = start;
    for (int64_t k = 0; k < lines.length(); ++k) {
      const int64_t at = lines.At(line, k);
      const double next = combine(value, in[at]);
      out[at] = lines.exclusive() ? value : next;
      value = next;
    }
  }
}

}  // namespace ridge
