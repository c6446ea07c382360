// GradBuilder: what an operator's gradient sees of one forward node, and where it puts the results.
//
//   void Gradient(GradBuilder& g) {  // softmax: dx = y * (dy - sum(dy * y))
//     const Value y = g.y(), dy = g.dy();
//     g.dx() = y * (dy - Sum(dy * y, {g.integer("axis")}, /*keep_dims=*/true));
//   }
//
// autodiff.cc walks the nodes.
#pragma once
#include <vector>

#include "ridge/graph/builder.h"

namespace ridge {

class GradBuilder {
 public:
  // Takes a gradient that is assigned to it.
  class Slot {
   public:
    Slot(GradBuilder& builder, size_t input) : builder_(builder), input_(input) {}
    void operator=(Value gradient) && { builder_.SetGrad(input_, gradient); }

   private:
    GradBuilder& builder_;
    size_t input_;
  };

  GradBuilder(GraphBuilder& builder, const Node& node, std::vector<Value> output_grads,
              std::vector<bool> needs_grad);

  GraphBuilder& b() { return builder_; }
  size_t input_count() const { return node_.inputs.size(); }
  const AttrMap& attrs() const { return node_.attrs; }
  int64_t integer(const std::string& name) const { return attrs().integer(name); }
  double number(const std::string& name) const { return attrs().number(name); }
  const std::string& text(const std::string& name) const { return attrs().text(name); }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return attrs().integers(name);
  }
  Value x(size_t i = 0) const;  // input i; invalid when absent
  Value y(size_t i = 0) const;  // output i
  // dL/d(output i), of the output's type; zeros when output i has no gradient.
  Value dy(size_t i = 0);
  bool has_dy(size_t i) const { return output_grads_[i].valid(); }
  // False when input i is absent or its gradient is not wanted: skip its work.
  bool needs_dx(size_t i) const { return i < needs_grad_.size() && needs_grad_[i]; }
  // dL/d(input i), to be assigned once; ignored when not wanted.  One of a shape that the input is
  // broadcast to is summed back to the input's.
  Slot dx(size_t i = 0) { return {*this, i}; }

  const std::vector<Value>& input_grads() const { return input_grads_; }

 private:
  void SetGrad(size_t i, Value v);

  GraphBuilder& builder_;
  Node node_;  // a copy
  std::vector<Value> output_grads_;
  std::vector<bool> needs_grad_;
  std::vector<Value> input_grads_;
};

}  // namespace ridge
