// Question: what cudnn_ask is asked, one line, as a graph of cuDNN's.
//
// Its parts are types and extents as in "bf16 256x3x224x224"; what can't be read ends the program
// with 2.  Tensors of four and more dimensions lie with channels last.
#pragma once
#include <cudnn_frontend.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace cudnn_ask {

namespace fe = cudnn_frontend;
using fe::DataType_t;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;
using Extents = std::vector<int64_t>;

struct Question {
  DataType_t type = DataType_t::FLOAT;  // of what is read
  bool exact = false;                   // without the units for products, which would round f32
  std::function<void(Graph&, bool deterministic)> add_nodes;
};

[[noreturn]] inline void Fail(const std::string& message) {
  std::fprintf(stderr, "cudnn_ask: %s\n", message.c_str());
  std::exit(2);
}

inline DataType_t ReadType(const std::string& name, const std::string& line) {
  static const std::map<std::string, DataType_t> types = {{"bf16", DataType_t::BFLOAT16},
                                                          {"f16", DataType_t::HALF},
                                                          {"tf32", DataType_t::FLOAT},
                                                          {"f32", DataType_t::FLOAT}};
  if (!types.contains(name)) Fail("'" + name + "' is no type: " + line);
  return types.at(name);
}

inline Extents ReadExtents(const std::string& text, const std::string& line) {
  Extents extents;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) {
    char* end = nullptr;
    extents.push_back(std::strtoll(part.c_str(), &end, 10));
    if (part.empty() || *end != '\0') Fail("'" + text + "' is no list of extents: " + line);
  }
  return extents;
}

inline Extents ChannelsLast(const Extents& dims) {
  Extents strides(dims.size());
  strides[1] = 1;
  int64_t next = dims[1];
  for (size_t i = dims.size(); i-- > 2; next *= dims[i]) strides[i] = next;
  strides[0] = next;
  return strides;
}

inline Tensor Input(Graph& graph, const char* name, const Extents& dims) {
  return graph.tensor(
      Tensor_attributes().set_name(name).set_dim(dims).set_stride(ChannelsLast(dims)));
}

inline Tensor FloatInput(Graph& graph, const char* name, const Extents& dims) {
  const Tensor tensor = Input(graph, name, dims);
  tensor->set_data_type(DataType_t::FLOAT);
  return tensor;
}

inline void SetOutput(const Tensor& tensor, DataType_t type, const Extents& dims) {
  tensor->set_dim(dims).set_stride(ChannelsLast(dims)).set_data_type(type).set_output(true);
}

}  // namespace cudnn_ask
