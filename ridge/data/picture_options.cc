#include "ridge/data/picture_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ridge/data/batch_spec.h"

namespace ridge {
namespace {

std::optional<int64_t> ParseSide(std::string_view text) {
  int64_t side = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  if (!whole || side < 1 || side > kMostPictureSide) return std::nullopt;
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

// "0.4/0.5/0.6"; empty when it is no list of finite numbers.
std::vector<double> ParseNumbers(std::string_view text) {
  std::vector<double> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    double number = 0;
    const auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (error != std::errc() || rest != text.data() + end || !std::isfinite(number)) return {};
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

// The size that is given, else the run's, else the model's.
std::optional<PictureTarget> FindTarget(const PictureOptions& options, const DataOptions& data) {
  std::optional<PictureTarget> target = TargetOf(data.model_inputs);
  const bool is_kept = data.preprocessing != nullptr && data.preprocessing->pictures;
  if (is_kept) target = data.preprocessing->pictures->target;
  if (!target && !options.size) return std::nullopt;
  if (!target) target.emplace();
  if (options.size) target->size = *options.size;
  const Field* input = FindFieldByName("image", data.model_inputs);
  const bool flat = !is_kept && input != nullptr && input->type.dims.size() == 1;
  if (flat && input->type.elements() == target->size.height * target->size.width)
    target->channels = 1;
  target->fit = options.fit.value_or(target->fit);
  target->filter = options.filter.value_or(target->filter);
  return target;
}

}  // namespace

std::optional<PixelNormalization> ParseNormalization(const std::string& text) {
  if (text == "none") return PixelNormalization();
  if (text == "imagenet") return PixelNormalization{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  if (text == "0.5") return PixelNormalization{{0.5}, {0.5}};
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  PixelNormalization result{ParseNumbers(std::string_view(text).substr(0, colon)),
                            ParseNumbers(std::string_view(text).substr(colon + 1))};
  const bool counts = !result.mean.empty() && result.mean.size() == result.std.size();
  const auto is_positive = [](double std) { return std > 0; };
  if (!counts || !std::all_of(result.std.begin(), result.std.end(), is_positive))
    return std::nullopt;
  return result;
}

const std::vector<std::string>& PictureKeys() {
  static const std::vector<std::string> keys = {"size", "fit", "resize", "normalize"};
  return keys;
}

Status TakePictureOption(const std::string& spec, const std::string& key, const std::string& value,
                         PictureOptions& options) {
  bool known = false;
  std::string values;
  if (key == "size") {
    options.size = ParseImageSize(value);
    known = options.size.has_value();
    values = fmt::format("N or HxW, each from 1 to {}", kMostPictureSide);
  } else if (key == "fit") {
    options.fit = value == "stretch" ? ImageFit::kStretch
                  : value == "pad"   ? ImageFit::kPad
                                     : ImageFit::kCrop;
    known = value == "stretch" || value == "crop" || value == "pad";
    values = "crop, stretch or pad";
  } else if (key == "resize") {
    options.filter = value == "nearest"   ? ResizeFilter::kNearest
                     : value == "bicubic" ? ResizeFilter::kBicubic
                                          : ResizeFilter::kBilinear;
    known = value == "nearest" || value == "bilinear" || value == "bicubic";
    values = "bilinear, bicubic or nearest";
  } else if (key == "normalize") {
    options.normalization = ParseNormalization(value);
    known = options.normalization.has_value();
    values = kNormalizationForms;
  }
  if (known) return Status();
  return InvalidArgument(
      fmt::format("data '{}': {} is '{}'; it must be {}", spec, key, value, values));
}

Result<PicturePreprocessing> PlanPictures(const std::string& spec, const PictureOptions& options,
                                          const DataOptions& data) {
  constexpr int64_t kSizeWithoutModel = 224;
  PictureOptions sized = options;
  if (data.model_inputs.empty() && !FindTarget(options, data))
    sized.size = ImageSize{kSizeWithoutModel, kSizeWithoutModel};
  const std::optional<PictureTarget> target = FindTarget(sized, data);
  if (!target) {
    return InvalidArgument(fmt::format(
        "data '{}': no size is given, and the model has no image of 1 or 3 channels that says one. "
        "hint: {},size=224",
        spec, spec));
  }
  PicturePreprocessing result{*target, {}};
  if (data.preprocessing != nullptr && data.preprocessing->pictures)
    result.normalization = data.preprocessing->pictures->normalization;
  if (options.normalization) result.normalization = *options.normalization;
  const size_t count = result.normalization.mean.size();
  if (count > 1 && count != static_cast<size_t>(target->channels)) {
    return InvalidArgument(fmt::format(
        "data '{}': normalize has {} means; the model's pictures have {}. hint: normalize=0.5",
        spec, count, target->channels == 1 ? "1 channel" : "3 channels"));
  }
  return result;
}

std::optional<PictureTarget> KnownTarget(const PictureOptions& options, const DataOptions& data) {
  DataOptions known = data;
  known.model_inputs.clear();
  return FindTarget(options, known);
}

Field PictureField(const PicturePreprocessing& pictures) {
  return {"image", pictures.target.type(), /*classes=*/0, pictures.normalization};
}

}  // namespace ridge
