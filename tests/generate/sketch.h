// Sketch: a random graph under construction, in f64, of which every number is known.
//
// So what is drawn can keep away from where operators are not defined or numbers grow: a node is
// added only when the operator takes the call and gives finite numbers of moderate size.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/builder.h"
#include "tests/generate/dice.h"

namespace ridge {

class Sketch {
 public:
  explicit Sketch(uint64_t seed) : dice(seed), b_("drawn") {}

  Dice dice;

  // Leaves.  The first extent of every input is batch().
  int64_t batch() const { return batch_; }
  void set_batch(int64_t batch) { batch_ = batch; }
  Value Input(Dims rest);
  // A new parameter in [-bound, bound), or one of this type that is there; now and then frozen.
  Value Parameter(const Dims& dims, double bound = 1);
  Value Frozen(const Dims& dims, double bound = 1);
  Value Statistic(const Dims& dims, double low, double high);   // a state, not trained
  Value Integers(const Dims& dims, int64_t low, int64_t high);  // a state i64, both included
  Value Labels(const Dims& rest, int64_t classes);              // an input
  Value Rng();
  Value Scalar(double number);
  Value Constant(Tensor tensor);
  void UpdateStatistic(Value statistic, Value by) { b_.Update(statistic, by); }

  static Value Absent() {
    Value absent;
    absent.id = kAbsent;
    return absent;
  }

  // Nodes; invalid where an input is, where the operator declines, or where numbers are not finite
  // or large.
  std::vector<Value> Outputs(const char* op, std::vector<Value> inputs, AttrMap attrs = {});
  Value Op(const char* op, std::vector<Value> inputs, AttrMap attrs = {}) {
    return Outputs(op, std::move(inputs), std::move(attrs))[0];
  }
  // The same for masked scores, which may be large.
  Value MaskedOp(const char* op, std::vector<Value> inputs, AttrMap attrs = {});
  Value Add(Value a, Value b) { return Op("add", {a, b}); }
  Value Sub(Value a, Value b) { return Op("sub", {a, b}); }
  Value Mul(Value a, Value b) { return Op("mul", {a, b}); }
  Value Div(Value a, Value b) { return Op("div", {a, b}); }
  Value Times(Value a, double factor) { return Mul(a, Scalar(factor)); }
  Value Plus(Value a, double number) { return Add(a, Scalar(number)); }
  Value Reshape(Value x, Dims dims) { return Op("reshape", {x}, {{"dims", std::move(dims)}}); }
  Value Transpose(Value x, std::vector<int64_t> permutation) {
    return Op("transpose", {x}, {{"permutation", std::move(permutation)}});
  }
  Value Slice(Value x, int64_t axis, int64_t begin, int64_t end);
  // `v` under so many dimensions, extents of 1 often among them.
  Value AsRank(Value v, int rank);
  // `v` itself when all its numbers are in [low, high], else squeezed into it.
  Value Within(Value v, double low, double high);

  // What is drawn from.
  void Keep(Value v);
  Value Recent();  // of the last few kept
  Value Any();     // mostly a recent one
  Value AnyOfRank(int least, int most);
  const std::vector<Value>& kept() const { return kept_; }
  bool IsRead(Value v) const { return read_[static_cast<size_t>(v.id)]; }

  const Dims& dims(Value v) const { return v.dims(); }
  int rank(Value v) const { return static_cast<int>(dims(v).size()); }
  int64_t extent(Value v, int axis) const { return dims(v)[static_cast<size_t>(axis)]; }
  int64_t elements(Value v) const { return v.type().elements(); }
  const Tensor& numbers(Value v) const { return numbers_[static_cast<size_t>(v.id)]; }
  Dims RandomFactors(int64_t count, int rank);

  GraphBuilder& b() { return b_; }

 private:
  static constexpr ValueId kAbsent = -2;

  Value Learn(Value leaf);
  std::vector<Value> AddNode(const char* op, const std::vector<Value>& inputs, AttrMap attrs,
                             double most);

  GraphBuilder b_;
  int64_t batch_ = 1;
  std::vector<Tensor> numbers_;  // by ValueId
  std::vector<bool> read_;       // by ValueId
  std::vector<Value> kept_;
  std::vector<Value> parameters_;
  Value rng_;
};

}  // namespace ridge
