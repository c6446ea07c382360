// Attention in training, or its gradient:
//   attention bf16 8x12x1024x64 keys 12x1024x64 causal dropout
// batch, heads, queries and their width, then heads, number and width of the values that belong to
// the keys; causal and dropout may be left out.
#pragma once
#include "question.h"

namespace cudnn_ask {

struct Attention {
  bool is_gradient = false, causal = false, dropout = false;
  Extents q, k, v;  // [batch, heads, rows, width]
};

// Rows of one sample are neighbours, as projections write them.
inline Extents RowStrides(const Extents& dims) {
  return {dims[1] * dims[2] * dims[3], dims[3], dims[1] * dims[3], 1};
}

inline Tensor Rows(Graph& graph, const char* name, const Extents& dims) {
  return graph.tensor(
      Tensor_attributes().set_name(name).set_dim(dims).set_stride(RowStrides(dims)));
}

inline Tensor Number(Graph& graph, const char* name) {
  return graph.tensor(Tensor_attributes()
                          .set_name(name)
                          .set_dim({1, 1, 1, 1})
                          .set_stride({1, 1, 1, 1})
                          .set_data_type(DataType_t::INT64));
}

template <typename Attributes>
Attributes AttributesOf(Graph& graph, const Attention& a) {
  Attributes attributes;
  attributes.set_name("attention").set_attn_scale(0.125F);
  if (a.causal)
    attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  if (a.dropout) attributes.set_dropout(0.1F, Number(graph, "seed"), Number(graph, "offset"));
  return attributes;
}

inline void SetRows(const Tensor& tensor, const Extents& dims) {
  tensor->set_output(true).set_dim(dims).set_stride(RowStrides(dims));
}

inline void AddAttention(Graph& graph, const Attention& a, bool deterministic) {
  const Tensor q = Rows(graph, "q", a.q), k = Rows(graph, "k", a.k), v = Rows(graph, "v", a.v);
  const Extents y = {a.q[0], a.q[1], a.q[2], a.v[3]};
  if (!a.is_gradient) {
    auto attributes = AttributesOf<fe::graph::SDPA_attributes>(graph, a);
    const auto [output, sums] = graph.sdpa(q, k, v, attributes.set_generate_stats(true));
    SetRows(output, y);
    sums->set_output(true).set_data_type(DataType_t::FLOAT);
    return;
  }
  const Extents rows = {a.q[0], a.q[1], a.q[2], 1};
  const Tensor sums = graph.tensor(Tensor_attributes()
                                       .set_name("sums")
                                       .set_dim(rows)
                                       .set_stride({rows[1] * rows[2], rows[2], 1, 1})
                                       .set_data_type(DataType_t::FLOAT));
  auto attributes = AttributesOf<fe::graph::SDPA_backward_attributes>(graph, a);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(q, k, v, Rows(graph, "y", y), Rows(graph, "dy", y), sums,
                          attributes.set_deterministic_algorithm(deterministic));
  SetRows(dq, a.q);
  SetRows(dk, a.k);
  SetRows(dv, a.v);
}

inline Question ReadAttention(const std::string& line) {
  std::istringstream in(line);
  Attention a;
  std::string op, type, queries, keys, extents;
  in >> op >> type >> queries >> keys >> extents;
  const Extents q = ReadExtents(queries, line), kv = ReadExtents(extents, line);
  if (keys != "keys" || q.size() != 4 || kv.size() != 3) Fail("extents disagree: " + line);
  a.is_gradient = op == "attention_grad";
  a.q = q;
  a.k = {q[0], kv[0], kv[1], q[3]};
  a.v = {q[0], kv[0], kv[1], kv[2]};
  for (std::string word; in >> word;) {
    if (word != "causal" && word != "dropout") Fail("'" + word + "' is no attribute: " + line);
    (word == "causal" ? a.causal : a.dropout) = true;
  }
  return {ReadType(type, line), /*exact=*/false,
          [a](Graph& graph, bool deterministic) { AddAttention(graph, a, deterministic); }};
}

}  // namespace cudnn_ask
