#include "ridge/data/picture_options.h"

#include <fmt/format.h>

#include <charconv>

#include "ridge/data/batch_spec.h"

namespace ridge {
namespace {

constexpr int64_t kMostSide = 1 << 14;  // of the model's image

std::optional<int64_t> ParseSide(std::string_view text) {
  int64_t side = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  if (!whole || side < 1 || side > kMostSide) return std::nullopt;
  return side;
}

// "224" or "HxW"
std::optional<ImageSize> ParseImageSize(std::string_view text) {
  const size_t x = text.find('x');
  const auto height = ParseSide(text.substr(0, x));
  const auto width = x == std::string_view::npos ? height : ParseSide(text.substr(x + 1));
  if (!height || !width) return std::nullopt;
  return ImageSize{*height, *width};
}

// The model's image, as far as its dimensions say what is what.
std::optional<PictureTarget> TargetOf(const std::vector<Field>& model_inputs) {
  const Field* input = FindFieldByName("image", model_inputs);
  if (input == nullptr) return std::nullopt;
  const Dims& dims = input->type.dims;
  PictureTarget target;
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  if (dims.size() == 2) {
    target.size = {dims[0], dims[1]};
    target.channels = 1;
  } else if (dims.size() == 3 && is_channels(dims[0])) {
    target.size = {dims[1], dims[2]};
    target.channels = static_cast<int>(dims[0]);
  } else if (dims.size() == 3 && is_channels(dims[2])) {
    target.size = {dims[0], dims[1]};
    target.channels = static_cast<int>(dims[2]);
  } else {
    return std::nullopt;
  }
  return target;
}

}  // namespace

const std::vector<std::string>& PictureKeys() {
  static const std::vector<std::string> keys = {"size", "fit", "resize"};
  return keys;
}

Status TakePictureOption(const std::string& spec, const std::string& key, const std::string& value,
                         PictureOptions& options) {
  bool known = false;
  std::string values;
  if (key == "size") {
    options.size = ParseImageSize(value);
    known = options.size.has_value();
    values = fmt::format("N or HxW, each from 1 to {}", kMostSide);
  } else if (key == "fit") {
    options.fit = value == "stretch" ? ImageFit::kStretch : ImageFit::kCrop;
    known = value == "stretch" || value == "crop";
    values = "crop or stretch";
  } else if (key == "resize") {
    options.filter = value == "nearest" ? ResizeFilter::kNearest : ResizeFilter::kBilinear;
    known = value == "nearest" || value == "bilinear";
    values = "bilinear or nearest";
  }
  if (known) return Status();
  return InvalidArgument(
      fmt::format("data '{}': {} is '{}'; it must be {}", spec, key, value, values));
}

Result<PictureTarget> MakePictureTarget(const std::string& spec, const PictureOptions& options,
                                        const std::vector<Field>& model_inputs,
                                        const Preprocessing* known) {
  const std::optional<PictureTarget> model = TargetOf(model_inputs);
  const std::optional<PictureTarget> run = known == nullptr ? std::nullopt : known->image;
  if (!model && !run && !options.size) {
    return InvalidArgument(fmt::format(
        "data '{}': no size is given, and the model has no image of 1 or 3 channels that says one. "
        "hint: {},size=224",
        spec, spec));
  }
  PictureTarget target = model.value_or(run.value_or(PictureTarget()));
  if (options.size) target.size = *options.size;
  const Field* input = FindFieldByName("image", model_inputs);
  const bool flat = input != nullptr && input->type.dims.size() == 1;
  if (flat && input->type.elements() == target.size.height * target.size.width) target.channels = 1;
  const PictureTarget usual = run.value_or(PictureTarget());
  target.fit = options.fit.value_or(usual.fit);
  target.filter = options.filter.value_or(usual.filter);
  return target;
}

}  // namespace ridge
