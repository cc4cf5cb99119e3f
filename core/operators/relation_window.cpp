// Convolution, pooling and resampling.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// A NaN can leave its window here (Winograd and FFT kernels mix a whole tile), so only samples and channel groups stay
// apart. input [N, Ci, ..] or [Ci, ..]; weight [Co, Ci / g, ..], transposed [Ci, Co / g, ..].
struct Convolution {
  bool transposed = false;
  std::int64_t groups = 1;
};

Convolution convolution_of(const Call& call) {
  Convolution result;
  result.groups = std::max<std::int64_t>(call.integer("groups", 1), 1);
  result.transposed = call.flag("transposed", false) || call.name.find("transpose") != std::string_view::npos;
  return result;
}

// Coordinates c of [0, size) in `groups` blocks against blocks of [0, other).
Link grouped(int out_dim, int in_dim, std::int64_t out_size, std::int64_t in_size, std::int64_t groups) {
  const std::int64_t out_block = std::max<std::int64_t>(out_size / groups, 1);
  const std::int64_t in_block = in_size / groups;
  Sizes low(out_size), high(out_size);
  for (std::int64_t c = 0; c < out_size; ++c) {
    low[c] = c / out_block * in_block;
    high[c] = low[c] + in_block;
  }
  return window(out_dim, in_dim, std::move(low), std::move(high));
}

// A tensor [N, C, ..] against a weight, one of whose first two dimensions is C (`side`) or C / g (the other one).
// `weight_is_output`: the gradient of the weight.
std::vector<Link> weight_links(const Sizes& tensor, int channel, const Sizes& weight, bool full_side, int side,
                               std::int64_t groups, bool weight_is_output) {
  std::vector<Link> links;
  auto add = [&](int weight_dim, Sizes weight_of_channel) {
    if (weight_is_output) {
      links.push_back(scatter(weight_dim, channel, std::move(weight_of_channel)));
    } else {
      links.push_back(points(channel, weight_dim, std::move(weight_of_channel)));
    }
  };
  Sizes own(tensor[channel]);
  if (full_side) {  // weight dimension `side` counts the tensor's channels
    for (std::int64_t c = 0; c < tensor[channel]; ++c) own[c] = c;
    add(side, std::move(own));
    return links;
  }
  const std::int64_t block = tensor[channel] / groups;  // dimension `side` counts them inside a group
  if (block == 0 || weight[side] != block) return links;
  for (std::int64_t c = 0; c < tensor[channel]; ++c) own[c] = c % block;
  add(side, std::move(own));
  if (groups > 1) {  // the other dimension counts all channels of the other tensor, group after group
    links.push_back(weight_is_output ? grouped(1 - side, channel, weight[1 - side], tensor[channel], groups)
                                     : grouped(channel, 1 - side, tensor[channel], weight[1 - side], groups));
  }
  return links;
}

Relation map_convolution(const Call& call) {
  const auto weight = call.shape("weight");
  const Convolution conv = convolution_of(call);
  if (!weight || weight->size() < 3 || call.out.size() + 1 < weight->size()) return call.unmapped();
  const bool batched = call.out.size() == weight->size();
  const int channel = batched ? 1 : 0;
  if (call.is("bias")) return one_dim(channel, 0);
  if (call.is("weight")) {
    return Relation::product(
        weight_links(call.out, channel, *weight, !conv.transposed, conv.transposed ? 1 : 0, conv.groups, false),
        call.out, call.in);
  }
  if (!call.is("input") && !call.is("self")) return call.unmapped();
  if (call.in.size() != call.out.size()) return call.unmapped();
  std::vector<Link> links;
  if (batched) links.push_back(same(0, 0));
  if (conv.groups > 1) links.push_back(grouped(channel, channel, call.out[channel], call.in[channel], conv.groups));
  return Relation::product(std::move(links), call.out, call.in);
}

// Returned: gradients of input, weight and bias. The engine's tensors always have the batch dimension.
Relation map_convolution_backward(const Call& call) {
  const auto weight = call.shape("weight");
  const Convolution conv = convolution_of(call);
  const bool from_gradient = call.is("grad_output");
  if (!weight || weight->size() < 3) return call.unmapped();
  if (call.returned() == 0) {
    if (call.is("input")) return Relation::nothing();
    if (call.out.size() != weight->size()) return call.unmapped();
    if (call.is("weight")) {  // the input's channels: dimension 1 of a plain weight, 0 of a transposed one
      return Relation::product(
          weight_links(call.out, 1, *weight, conv.transposed, conv.transposed ? 0 : 1, conv.groups, false), call.out,
          call.in);
    }
    if (call.in.size() != call.out.size()) return call.unmapped();
    std::vector<Link> links{same(0, 0)};
    if (conv.groups > 1) links.push_back(grouped(1, 1, call.out[1], call.in[1], conv.groups));
    return Relation::product(std::move(links), call.out, call.in);
  }
  if (call.is("weight")) return Relation::nothing();
  if (call.returned() == 2) return from_gradient ? one_dim(0, 1) : Relation::nothing();
  if (call.out != *weight || call.in.size() != weight->size()) return call.unmapped();
  // The gradient's channels are the weight's first dimension (its second when transposed), the input's the other one.
  const int side = from_gradient != conv.transposed ? 0 : 1;
  return Relation::product(weight_links(call.in, 1, *weight, side == 0, side, conv.groups, true), call.out, call.in);
}

Relation map_conv_tbc(const Call& call) {
  if (call.is("weight")) return one_dim(2, 2);
  return call.is("bias") ? one_dim(2, 0) : one_dim(1, 1);
}

int spatial_rank(std::string_view name) {
  for (char digit : {'1', '2', '3'}) {
    const char text[] = {digit, 'd', 0};
    if (name.find(text) != std::string_view::npos) return digit - '0';
  }
  return 0;
}

struct Bounds {
  Sizes low, high;
};

// The windows of `small` coordinates over `large` ones.
Bounds pool_bounds(std::int64_t small, std::int64_t large, std::int64_t kernel, std::int64_t stride,
                   std::int64_t padding, std::int64_t dilation) {
  Bounds result{Sizes(small), Sizes(small)};
  for (std::int64_t c = 0; c < small; ++c) {
    const std::int64_t start = c * stride - padding;
    result.low[c] = std::clamp<std::int64_t>(start, 0, large);
    result.high[c] = std::clamp<std::int64_t>(start + (kernel - 1) * dilation + 1, 0, large);
  }
  return result;
}

Bounds adaptive_bounds(std::int64_t small, std::int64_t large) {
  Bounds result{Sizes(small), Sizes(small)};
  for (std::int64_t c = 0; c < small; ++c) {
    result.low[c] = c * large / small;
    result.high[c] = ((c + 1) * large + small - 1) / small;
  }
  return result;
}

// How far around its place a resampled element may read.
double resample_reach(std::string_view name, double step) {
  if (name.find("_aa") != std::string_view::npos) return 3 * std::max(1.0, step) + 2;  // a kernel as wide as a step
  if (name.find("nearest") != std::string_view::npos) return 1;
  return name.find("cubic") != std::string_view::npos ? 3 : 2;
}

// Every way of counting (corners aligned or not, scales given by the user) puts the place of output element c between
// these two; a scale s gives floor(in * s) elements, so that 1 / s lies between in / (out + 1) and in / out.
Bounds resample_bounds(std::int64_t small, std::int64_t large, std::string_view name) {
  Bounds result{Sizes(small), Sizes(small)};
  const double in = static_cast<double>(large);
  const double out = static_cast<double>(small);
  const double reach = resample_reach(name, in / out);
  for (std::int64_t c = 0; c < small; ++c) {
    const double place = static_cast<double>(c);
    const double first = std::min(place * in / (out + 1), place * (in - 1) / std::max(out - 1, 1.0));
    const double last = (place + 1) * in / out;
    result.low[c] = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(first - reach)), 0, large);
    result.high[c] = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(last + reach)), 0, large);
  }
  return result;
}

// Windows go from the side that has one coordinate a window to the side that has the places. Both ends grow, so seen
// from the other side they are windows as well.
Bounds inverted(const Bounds& bounds, std::int64_t size) {
  Bounds result{Sizes(size), Sizes(size)};
  std::size_t first = 0;
  std::size_t last = 0;
  for (std::int64_t c = 0; c < size; ++c) {
    while (first < bounds.high.size() && bounds.high[first] <= c) ++first;
    while (last < bounds.low.size() && bounds.low[last] <= c) ++last;
    result.low[c] = static_cast<std::int64_t>(first);
    result.high[c] = static_cast<std::int64_t>(last);
  }
  return result;
}

enum class Sampling : std::uint8_t { kPool, kAdaptive, kResample, kFree };

// Samples and channels stay apart; along the last dimensions windows as `sampling` says. backward: the output is the
// large side.
Relation sampled(const Call& call, Sampling sampling, bool backward) {
  const int spatial = spatial_rank(call.name);
  const Sizes& small = backward ? call.in : call.out;
  const Sizes& large = backward ? call.out : call.in;
  const int rank = static_cast<int>(small.size());
  if (spatial == 0 || large.size() != small.size() || rank <= spatial) return call.unmapped();
  auto option = [&](const char* argument, int k, std::int64_t otherwise) {
    const auto list = call.ints(argument);
    if (!list || list->empty()) return otherwise;
    return (*list)[std::min<std::size_t>(k, list->size() - 1)];
  };
  std::vector<Link> links;
  for (int d = 0; d < rank; ++d) {
    const int k = d - (rank - spatial);
    if (k < 0) {
      if (small[d] != large[d]) return call.unmapped();
      links.push_back(same(d, d));
      continue;
    }
    Bounds bounds;
    switch (sampling) {
      case Sampling::kPool: {
        const std::int64_t kernel = option("kernel_size", k, 0);
        if (kernel < 1) return call.unmapped();
        bounds = pool_bounds(small[d], large[d], kernel, option("stride", k, kernel), option("padding", k, 0),
                             option("dilation", k, 1));
        break;
      }
      case Sampling::kAdaptive:
        bounds = adaptive_bounds(small[d], large[d]);
        break;
      case Sampling::kResample:
        bounds = resample_bounds(small[d], large[d], call.name);
        break;
      case Sampling::kFree:
        continue;
    }
    if (backward) bounds = inverted(bounds, large[d]);
    links.push_back(window(d, d, std::move(bounds.low), std::move(bounds.high)));
  }
  return Relation::product(std::move(links), call.out, call.in);
}

Relation map_pool(const Call& call) { return sampled(call, Sampling::kPool, false); }
Relation map_adaptive_pool(const Call& call) { return sampled(call, Sampling::kAdaptive, false); }
Relation map_free_pool(const Call& call) { return sampled(call, Sampling::kFree, false); }
Relation map_upsample(const Call& call) { return sampled(call, Sampling::kResample, false); }
// Only the shape of self counts; indices say which place won.
bool is_gradient(const Call& call) { return call.arg().starts_with("grad"); }
Relation map_pool_backward(const Call& call) {
  return is_gradient(call) ? sampled(call, Sampling::kPool, true) : Relation::nothing();
}
Relation map_adaptive_pool_backward(const Call& call) {
  return is_gradient(call) ? sampled(call, Sampling::kAdaptive, true) : Relation::nothing();
}
Relation map_free_pool_backward(const Call& call) {
  return is_gradient(call) ? sampled(call, Sampling::kFree, true) : Relation::nothing();
}
Relation map_upsample_backward(const Call& call) { return sampled(call, Sampling::kResample, true); }

Relation map_unpool(const Call& call) {
  if (!call.is("self")) return Relation::everything();
  return sampled(call, Sampling::kFree, false);
}

// input [N, C, ..], grid [N, .., spatial]; the output has the grid's places.
Relation map_grid_sampler(const Call& call) {
  if (call.is("input")) return leading(call.in, call.out, 2);
  if (call.in.size() != call.out.size() || call.in.empty()) return call.unmapped();
  std::vector<int> source(call.in.size(), Relation::kAny);
  source[0] = 0;
  for (std::size_t d = 1; d + 1 < call.in.size(); ++d) source[d] = static_cast<int>(d) + 1;
  return Relation::box(std::move(source));
}

Relation map_sample(const Call& call) { return leading(call.in, call.out, 1); }

// Image [N, C, H, W] against columns [N, C * kernel, places]: a place reads its window.
Relation map_im2col(const Call& call) {
  const bool backward = call.name == "col2im";
  const Sizes& image = backward ? call.out : call.in;
  const Sizes& columns = backward ? call.in : call.out;
  const auto kernel = call.ints("kernel_size");
  const auto dilation = call.ints("dilation");
  const auto padding = call.ints("padding");
  const auto stride = call.ints("stride");
  if (!kernel || !dilation || !padding || !stride || image.size() < 3 || columns.size() + 1 != image.size()) {
    return call.unmapped();
  }
  const std::int64_t batch = image.size() == 4 ? image[0] : 1;
  const std::int64_t channels = image[image.size() - 3];
  auto at = [](const Sizes& list, std::size_t k) { return list.empty() ? 0 : list[std::min(k, list.size() - 1)]; };
  Sizes column_view{batch, channels, at(*kernel, 0) * at(*kernel, 1)};
  const Sizes image_view{batch, channels, image[image.size() - 2], image.back()};
  std::vector<Link> links{same(0, 0), same(1, 1)};
  for (int k = 0; k < 2; ++k) {
    const std::int64_t large = image_view[2 + k];
    const std::int64_t reach = at(*dilation, k) * (at(*kernel, k) - 1);
    if (at(*stride, k) < 1 || large + 2 * at(*padding, k) <= reach) return call.unmapped();
    const std::int64_t small = (large + 2 * at(*padding, k) - reach - 1) / at(*stride, k) + 1;
    column_view.push_back(small);
    Bounds bounds = pool_bounds(small, large, at(*kernel, k), at(*stride, k), at(*padding, k), at(*dilation, k));
    if (backward) bounds = inverted(bounds, large);
    links.push_back(
        window(backward ? 2 + k : 3 + k, backward ? 3 + k : 2 + k, std::move(bounds.low), std::move(bounds.high)));
  }
  return backward ? Relation::product(std::move(links), image_view, std::move(column_view))
                  : Relation::product(std::move(links), std::move(column_view), image_view);
}

}  // namespace

std::span<const Family> window_families() {
  static constexpr std::array kTable{
      Family{
          "conv1d conv2d conv3d convolution _convolution _convolution_mode convolution_overrideable conv_depthwise3d "
          "_conv_depthwise2d "
          "thnn_conv2d _slow_conv2d_forward slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d "
          "mkldnn_convolution cudnn_convolution cudnn_convolution_relu miopen_convolution miopen_depthwise_convolution "
          "conv_transpose1d conv_transpose2d conv_transpose3d cudnn_convolution_transpose miopen_convolution_transpose "
          "slow_conv_transpose2d slow_conv_transpose3d",
          map_convolution},
      Family{"convolution_backward convolution_backward_overrideable", map_convolution_backward},
      Family{"conv_tbc", map_conv_tbc},
      Family{"avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices "
             "max_pool2d_with_indices max_pool3d_with_indices mkldnn_max_pool2d mkldnn_max_pool3d",
             map_pool},
      Family{"adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d "
             "mkldnn_adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
             map_adaptive_pool},
      Family{"fractional_max_pool2d fractional_max_pool3d", map_free_pool},
      Family{
          "avg_pool2d_backward avg_pool3d_backward max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
          "max_pool2d_backward",
          map_pool_backward},
      Family{"_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_avg_pool3d_backward "
             "adaptive_max_pool2d_backward adaptive_max_pool3d_backward mkldnn_adaptive_avg_pool2d_backward",
             map_adaptive_pool_backward},
      Family{"fractional_max_pool2d_backward fractional_max_pool3d_backward", map_free_pool_backward},
      Family{"max_unpool2d max_unpool3d", map_unpool},
      Family{"upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
             "_upsample_nearest_exact2d "
             "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
             "_upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa",
             map_upsample},
      Family{"upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
             "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward "
             "upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward "
             "upsample_bicubic2d_backward _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward "
             "_upsample_lanczos2d_aa_backward",
             map_upsample_backward},
      Family{"grid_sampler grid_sampler_2d grid_sampler_3d cudnn_grid_sampler _grid_sampler_2d_cpu_fallback",
             map_grid_sampler},
      Family{"grid_sampler_2d_backward grid_sampler_3d_backward affine_grid_generator affine_grid_generator_backward",
             map_sample},
      Family{"im2col col2im", map_im2col},
  };
  return kTable;
}

}  // namespace sherlorch::maps
