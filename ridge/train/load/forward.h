// LoadForward: the forward graph of a training, with its loss, its dimensions bound to the data.
//
// Every verb that trains, plans or evaluates calls it, so all use the same graph.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/learn/loss_shape.h"
#include "ridge/learn/training_graph.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct Forward {
  Graph graph;
  std::optional<Graph> source;  // of a graph in text form: as LoadModel gives it
  ForwardInfo facts;
  ModelNotes notes;
  LossShape loss_shape;
  // The opened data, which determine the model's open dimensions and the labels' shape; none
  // without data, and for data that adapt to the model's inputs, which are opened after it.
  std::optional<DataSplits> data;
  std::shared_ptr<const Preprocessing> preprocessing;  // of the run whose data are opened; or null
};

// `model`: loaded instead of options.model, such as the run's own copy; empty: options.model.
// `run`: the run folder whose preprocessing the data go through; empty: `model`, or options.model,
// if that is a run, else none. Fails as OpenData, LoadModel, WithLoss and InspectForward do, and
// with kInvalidArgument when the model has another fixed batch, or has its own training step and
// the options set a different one.
Result<Forward> LoadForward(const TrainOptions& options, const std::string& model = "",
                            const std::string& run = "");

// The same of options.model with the data of `like`, which are open.
Result<Forward> LoadForwardOf(const TrainOptions& options, const Forward& like);

// The learning rate of a model's own step that has no input `ridge.lr`; 0 when it is not known.
std::optional<double> FixedRate(const Forward& forward);

}  // namespace ridge
