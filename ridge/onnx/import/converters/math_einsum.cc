// ONNX converter: Einsum.
//
// Operands are contracted from the left, two at a time.  A pair is one matmul: labels that both
// have and that stay are its batch, those that go are summed; operands whose labels already lie in
// matmul's order, transposed or not, are not copied.  Labels that only one operand has and nobody
// wants are summed first, repeated ones are diagonals.  An extent 1 stretches.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ridge/onnx/import/converters/math.h"

namespace ridge {
namespace {

using Labels = std::vector<int>;  // letters, and kEllipsis + i for dimensions under "..."

constexpr int kEllipsis = 1000;  // + places from the right

struct Term {
  Value v;
  Labels labels;
};

bool Has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels Where(const Labels& labels, bool wanted, const Labels& in) {
  Labels out;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(out),
               [&](int label) { return Has(in, label) == wanted; });
  return out;
}

Labels Joined(const Labels& a, const Labels& b) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

class Einsum {
 public:
  explicit Einsum(OnnxNode& n) : n_(n), b_(n.b()) {}
  Result<Value> Run();

 private:
  Status Parse();
  Status ParseTerm(const std::string& text, size_t i);
  Result<Labels> ReadLabels(const std::string& text, int ellipsis_rank);
  Labels ImplicitOutput() const;
  Status Measure(const Term& term);
  Labels Wanted(size_t next) const;

  Term Diagonal(Term term);
  Term SumOut(Term term, const Labels& wanted);
  Term Permuted(const Term& term, const Labels& order);
  Term Contract(Term a, Term b, const Labels& wanted);
  Term Outer(const Term& a, const Term& b, const Labels& batch);
  void SumStretched(Term& a, Term& b, const Labels& summed);
  Value AsMatrices(const Term& term, const Labels& batch, const Labels& rows, const Labels& columns,
                   bool& transposed);
  int64_t Extent(const Term& term, int label) const;
  Dims Extents(const Term& term, const Labels& labels) const;

  OnnxNode& n_;
  GraphBuilder& b_;
  std::vector<Term> terms_;
  Labels output_;
  int ellipsis_rank_ = 0;
};

// Labels of "ab...c"; "..." stands for `ellipsis_rank` dimensions.
Result<Labels> Einsum::ReadLabels(const std::string& text, int ellipsis_rank) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "...") == 0 && !seen) {
      for (int k = ellipsis_rank; k-- > 0;) labels.push_back(kEllipsis + k);
      seen = true;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      labels.push_back(text[i]);
    } else {
      return n_.Error(
          fmt::format("equation has '{}' in the term '{}'; terms are letters and one "
                      "ellipsis",
                      text[i], text));
    }
  }
  return labels;
}

Status Einsum::ParseTerm(const std::string& text, size_t i) {
  const auto rank = static_cast<int>(n_.dims(i).size());
  const auto letters =
      static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return c != '.'; }));
  const int under = text.find('.') == std::string::npos ? 0 : rank - letters;
  RIDGE_ASSIGN_OR_RETURN(Labels labels, ReadLabels(text, std::max(under, 0)));
  if (static_cast<int>(labels.size()) != rank) {
    return n_.Error(fmt::format("the term '{}' of the equation has {} labels, input {} is {}", text,
                                labels.size(), i, DimsToString(n_.dims(i))));
  }
  ellipsis_rank_ = std::max(ellipsis_rank_, under);
  terms_.push_back({n_[i], std::move(labels)});
  return Status();
}

Status Einsum::Parse() {
  std::string equation = n_.text("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  RIDGE_RETURN_IF_ERROR(n_.Need(std::max<size_t>(n_.input_count(), 1)));
  constexpr size_t kMostTerms = 64;
  if (n_.input_count() > kMostTerms)
    return n_.Unsupported(
        fmt::format("has {} operands; at most {} are supported", n_.input_count(), kMostTerms));
  std::vector<std::string> texts(1);
  for (char c : left) {
    if (c == ',') {
      texts.emplace_back();
    } else {
      texts.back() += c;
    }
  }
  if (texts.size() != n_.input_count()) {
    return n_.Error(fmt::format("equation '{}' has {} terms; the node has {} inputs", equation,
                                texts.size(), n_.input_count()));
  }
  for (size_t i = 0; i < texts.size(); ++i) RIDGE_RETURN_IF_ERROR(ParseTerm(texts[i], i));
  output_ = ImplicitOutput();
  if (arrow != std::string::npos) {
    RIDGE_ASSIGN_OR_RETURN(output_, ReadLabels(equation.substr(arrow + 2), ellipsis_rank_));
  }
  Labels all;
  for (const Term& term : terms_) all = Joined(all, term.labels);
  const std::set<int> once(output_.begin(), output_.end());
  if (once.size() != output_.size() || !Where(output_, false, all).empty()) {
    return n_.Error(
        fmt::format("equation '{}': each label of the output must be there once and in "
                    "some input",
                    equation));
  }
  return n_.status();
}

// Without "->": the ellipsis, then the letters that occur once, in order.
Labels Einsum::ImplicitOutput() const {
  std::map<int, int> counts;
  for (const Term& term : terms_) {
    for (int label : term.labels) ++counts[label];
  }
  Labels output;
  for (int k = ellipsis_rank_; k-- > 0;) output.push_back(kEllipsis + k);
  for (const auto& [label, count] : counts) {
    if (label < kEllipsis && count == 1) output.push_back(label);
  }
  return output;
}

int64_t Einsum::Extent(const Term& term, int label) const {
  const auto at = std::find(term.labels.begin(), term.labels.end(), label);
  if (at == term.labels.end() || !term.v.valid()) return 1;
  return term.v.dims()[static_cast<size_t>(at - term.labels.begin())];
}

Dims Einsum::Extents(const Term& term, const Labels& labels) const {
  Dims dims;
  for (int label : labels) dims.push_back(Extent(term, label));
  return dims;
}

Term Einsum::Permuted(const Term& term, const Labels& order) {
  if (order == term.labels) return term;
  std::vector<int64_t> permutation;
  for (int label : order) {
    const auto at = std::find(term.labels.begin(), term.labels.end(), label);
    permutation.push_back(at - term.labels.begin());
  }
  return {Transpose(term.v, permutation), order};
}

// A label that is there twice: its two dimensions to the end, [.., e, e] as [.., e * e], and of
// that each (e + 1)th element.
Term Einsum::Diagonal(Term term) {
  for (size_t i = 0; i < term.labels.size() && b_.ok(); ++i) {
    const auto again = std::find(term.labels.begin() + static_cast<int64_t>(i) + 1,
                                 term.labels.end(), term.labels[i]);
    if (again == term.labels.end()) continue;
    const auto j = static_cast<size_t>(again - term.labels.begin());
    const Dims dims = term.v.dims();
    if (dims[i] != dims[j]) {
      n_.Fail(n_.Error(fmt::format("a label stands for {} and {} in one input", dims[i], dims[j])));
      return term;
    }
    const int label = term.labels[i];
    std::vector<int64_t> permutation;
    Labels rest;
    Dims flat;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d == i || d == j) continue;
      permutation.push_back(static_cast<int64_t>(d));
      rest.push_back(term.labels[d]);
      flat.push_back(dims[d]);
    }
    permutation.insert(permutation.end(), {static_cast<int64_t>(i), static_cast<int64_t>(j)});
    flat.push_back(dims[i] * dims[i]);
    const Value square = ReshapeExactly(Transpose(term.v, permutation), flat);
    const auto last = static_cast<int64_t>(rest.size());
    term.v = Slice(square, last, 0, INT64_MAX, dims[i] + 1);
    rest.push_back(label);
    term.labels = rest;
    i = static_cast<size_t>(-1);  // from the start: places have changed
  }
  return term;
}

Term Einsum::SumOut(Term term, const Labels& wanted) {
  std::vector<int64_t> axes;
  for (size_t d = 0; d < term.labels.size(); ++d) {
    if (!Has(wanted, term.labels[d])) axes.push_back(static_cast<int64_t>(d));
  }
  if (axes.empty()) return term;
  return {Sum(term.v, axes), Where(term.labels, true, wanted)};
}

// Each label has one extent, or 1.
Status Einsum::Measure(const Term& term) {
  for (int label : term.labels) {
    for (const Term& other : terms_) {
      const int64_t a = Extent(term, label), b = Extent(other, label);
      if (a == b || a == 1 || b == 1) continue;
      return n_.Error(fmt::format("a label of the equation stands for {} and for {}", a, b));
    }
  }
  return Status();
}

// Labels that the output or operands from `next` on have.
Labels Einsum::Wanted(size_t next) const {
  Labels wanted = output_;
  for (size_t i = next; i < terms_.size(); ++i) wanted = Joined(wanted, terms_[i].labels);
  return wanted;
}

// A summed label that is 1 in one operand stretches: the other one is summed alone.
void Einsum::SumStretched(Term& a, Term& b, const Labels& summed) {
  for (int label : summed) {
    const int64_t in_a = Extent(a, label), in_b = Extent(b, label);
    if (in_a == in_b) continue;
    a = SumOut(a, Where(a.labels, false, {label}));
    b = SumOut(b, Where(b.labels, false, {label}));
  }
}

// The term as [batch.., rows, columns]; `transposed` when it lies as [batch.., columns, rows].
Value Einsum::AsMatrices(const Term& term, const Labels& batch, const Labels& rows,
                         const Labels& columns, bool& transposed) {
  transposed = term.labels == Joined(Joined(batch, columns), rows) &&
               term.labels != Joined(Joined(batch, rows), columns);
  const Labels& first = transposed ? columns : rows;
  const Labels& second = transposed ? rows : columns;
  const Term ordered = Permuted(term, Joined(Joined(batch, first), second));
  Dims dims = Extents(ordered, batch);
  dims.push_back(ElementCount(Extents(ordered, first)));
  dims.push_back(ElementCount(Extents(ordered, second)));
  return ReshapeExactly(ordered.v, dims);
}

// Nothing to sum: a product that broadcasts.
Term Einsum::Outer(const Term& a, const Term& b, const Labels& batch) {
  const Labels rows = Where(a.labels, false, batch), columns = Where(b.labels, false, batch);
  const Term left = Permuted(a, Joined(batch, rows)), right = Permuted(b, Joined(batch, columns));
  Dims left_dims = Extents(left, left.labels);
  left_dims.resize(left_dims.size() + columns.size(), 1);
  Dims right_dims = Extents(right, batch);
  right_dims.resize(right_dims.size() + rows.size(), 1);
  for (int label : columns) right_dims.push_back(Extent(right, label));
  const Value factor = ReshapeExactly(right.v, right_dims);
  const Value y = ReshapeExactly(left.v, left_dims) * factor;
  return {y, Joined(Joined(batch, rows), columns)};
}

Term Einsum::Contract(Term a, Term b, const Labels& wanted) {
  a = SumOut(a, Joined(wanted, b.labels));
  b = SumOut(b, Joined(wanted, a.labels));
  SumStretched(a, b, Where(Where(a.labels, true, b.labels), false, wanted));
  if (!b_.ok()) return a;
  const Labels both = Where(a.labels, true, b.labels);
  const Labels batch = Where(both, true, wanted), summed = Where(both, false, wanted);
  if (summed.empty()) return Outer(a, b, batch);
  const Labels rows = Where(a.labels, false, both), columns = Where(b.labels, false, both);
  bool transpose_a = false, transpose_b = false;
  const Value left = AsMatrices(a, batch, rows, summed, transpose_a);
  const Value right = AsMatrices(b, batch, summed, columns, transpose_b);
  const Value y = MatMul(left, right, transpose_a, transpose_b);
  if (!b_.ok()) return a;
  Dims dims = y.dims();
  dims.resize(dims.size() - 2);
  for (int label : rows) dims.push_back(Extent(a, label));
  for (int label : columns) dims.push_back(Extent(b, label));
  return {ReshapeExactly(y, dims), Joined(Joined(batch, rows), columns)};
}

Result<Value> Einsum::Run() {
  RIDGE_RETURN_IF_ERROR(Parse());
  for (Term& term : terms_) term = Diagonal(std::move(term));
  RIDGE_RETURN_IF_ERROR(n_.status());
  for (const Term& term : terms_) RIDGE_RETURN_IF_ERROR(Measure(term));
  Term sum = terms_[0];
  for (size_t i = 1; i < terms_.size(); ++i) {
    sum = Contract(std::move(sum), terms_[i], Wanted(i + 1));
    RIDGE_RETURN_IF_ERROR(n_.status());
  }
  sum = Permuted(SumOut(std::move(sum), output_), output_);
  return sum.v;
}

}  // namespace

Result<Value> ConvertEinsum(OnnxNode& n) { return Einsum(n).Run(); }

}  // namespace ridge
