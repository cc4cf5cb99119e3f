// Operators that repeat, mask or rearrange elements by a fixed pattern: repeat, tril, diag, pad, unfold, pixel_shuffle.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

// repeat and tile: output coordinate c along each dimension comes from c modulo the input's size.
Relation map_repeat(const Call& call) {
  const std::size_t rank = std::max(call.in.size(), call.out.size());
  if (call.out.size() != rank) return call.unmapped();
  Sizes in = call.in;
  while (in.size() < rank) in.insert(in.begin(), 1);
  std::vector<Link> links;
  for (std::size_t d = 0; d < rank; ++d) {
    if (in[d] == 1) continue;
    if (in[d] == 0) return Relation::nothing();
    const int dim = static_cast<int>(d);
    if (in[d] == call.out[d]) {
      links.push_back(same(dim, dim));
      continue;
    }
    Sizes from(call.out[d]);
    for (std::int64_t c = 0; c < call.out[d]; ++c) from[c] = c % in[d];
    links.push_back(points(dim, dim, std::move(from)));
  }
  return Relation::product(std::move(links), call.out, in);
}

Relation map_repeat_interleave(const Call& call) {
  if (!call.is("self")) return call.is("repeats") ? Relation::nothing() : call.unmapped();
  const auto dim_arg = call.integer("dim");
  const Sizes flat_in{numel(call.in)};
  const Sizes flat_out{numel(call.out)};
  const Sizes& in = dim_arg ? call.in : flat_in;
  const Sizes& out = dim_arg ? call.out : flat_out;
  const int dim = dim_arg ? wrap(*dim_arg, in.size()) : 0;
  if (dim < 0 || in.size() != out.size()) return call.unmapped();
  Sizes from;
  from.reserve(out[dim]);
  const Sizes* counts = call.values("repeats");
  const auto fixed = call.integer("repeats");
  if (counts == nullptr && !fixed) return lines(in, out, {dim});
  if (counts != nullptr && counts->size() != 1 && static_cast<std::int64_t>(counts->size()) != in[dim]) {
    return call.unmapped();
  }
  for (std::int64_t c = 0; c < in[dim]; ++c) {
    const std::int64_t times = fixed ? *fixed : counts->size() == 1 ? (*counts)[0] : (*counts)[c];
    for (std::int64_t k = 0; k < times; ++k) from.push_back(c);
  }
  if (static_cast<std::int64_t>(from.size()) != out[dim]) return call.unmapped();
  return along(in, out, dim, points(0, 0, std::move(from)));
}

// The other triangle is written as zeros.
Relation map_triangle(const Call& call) {
  if (call.in != call.out || call.out.size() < 2) return call.unmapped();
  const std::int64_t offset = call.integer("diagonal", 0);
  const bool lower = call.name.starts_with("tril");
  const std::int64_t rows = call.out[call.out.size() - 2];
  const std::int64_t columns = call.out.back();
  const std::int64_t total = numel(call.out);
  if (columns == 0 || total / columns > kMaxListed) return Relation::identity();
  ElementSet kept;
  for (std::int64_t base = 0, row = 0; base < total; base += columns, row = (row + 1) % rows) {
    const std::int64_t diagonal = row + offset;  // the column on it
    const std::int64_t begin = lower ? 0 : std::clamp<std::int64_t>(diagonal, 0, columns);
    const std::int64_t end = lower ? std::clamp<std::int64_t>(diagonal + 1, 0, columns) : columns;
    if (begin < end) kept.append(base + begin, base + end);
  }
  return Relation::identity().restrict_outputs(std::move(kept));
}

// `matrix` has the diagonal in dimensions a and b, `vector` as its last dimension.
// The diagonal's element k lies at row k - min(offset, 0), column k + max(offset, 0).
struct Diagonal {
  Sizes rows, columns;
};
Diagonal diagonal_points(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  Diagonal result;
  for (std::int64_t r = std::max<std::int64_t>(-offset, 0), c = std::max<std::int64_t>(offset, 0);
       r < rows && c < columns; ++r, ++c) {
    result.rows.push_back(r);
    result.columns.push_back(c);
  }
  return result;
}

Relation take_diagonal(const Call& call, int a, int b, std::int64_t offset) {
  if (a < 0 || b < 0 || a == b || call.out.size() + 1 != call.in.size()) return call.unmapped();
  Diagonal at = diagonal_points(call.in[a], call.in[b], offset);
  const int last = static_cast<int>(call.out.size()) - 1;
  std::vector<Link> links{points(last, a, std::move(at.rows)), points(last, b, std::move(at.columns))};
  int next = 0;
  for (int d = 0; d < static_cast<int>(call.in.size()); ++d) {
    if (d != a && d != b) links.push_back(same(next++, d));
  }
  return Relation::product(std::move(links), call.out, call.in);
}

Relation put_diagonal(const Call& call, const Sizes& in, int a, int b, std::int64_t offset) {
  if (a < 0 || b < 0 || a == b || in.size() + 1 != call.out.size()) return call.unmapped();
  Diagonal at = diagonal_points(call.out[a], call.out[b], offset);
  const int last = static_cast<int>(in.size()) - 1;
  std::vector<Link> links{scatter(a, last, std::move(at.rows)), scatter(b, last, std::move(at.columns))};
  int next = 0;
  for (int d = 0; d < static_cast<int>(call.out.size()); ++d) {
    if (d != a && d != b) links.push_back(same(d, next++));
  }
  return Relation::product(std::move(links), call.out, in);
}

Relation map_diag(const Call& call) {
  const std::int64_t offset = call.integer("diagonal", 0);
  return call.in.size() == 1 ? put_diagonal(call, call.in, 0, 1, offset) : take_diagonal(call, 0, 1, offset);
}

Relation map_diagonal(const Call& call) {
  const std::int64_t otherwise = call.name.starts_with("linalg") ? -2 : 0;
  return take_diagonal(call, wrap(call.integer("dim1", otherwise), call.in.size()),
                       wrap(call.integer("dim2", otherwise + 1), call.in.size()), call.integer("offset", 0));
}

Relation map_diag_embed(const Call& call) {
  return put_diagonal(call, call.in, wrap(call.integer("dim1", -2), call.out.size()),
                      wrap(call.integer("dim2", -1), call.out.size()), call.integer("offset", 0));
}

Relation map_diagflat(const Call& call) {
  return put_diagonal(call, {numel(call.in)}, 0, 1, call.integer("offset", 0));
}

Relation map_into_diagonal(const Call& call) {
  if (call.is("self")) return Relation::identity();  // the diagonal itself is overwritten: a few elements too many
  return put_diagonal(call, call.in, wrap(call.integer("dim1", 0), call.out.size()),
                      wrap(call.integer("dim2", 1), call.out.size()), call.integer("offset", 0));
}

// The elements on the main diagonal of a matrix.
ElementSet main_diagonal(const Sizes& matrix) {
  const Diagonal at = diagonal_points(matrix[0], matrix[1], 0);
  ElementSet elements;
  for (std::size_t k = 0; k < at.rows.size(); ++k) {
    const std::int64_t linear = at.rows[k] * matrix[1] + at.columns[k];
    elements.append(linear, linear + 1);
  }
  return elements;
}

Relation map_trace(const Call& call) {
  if (call.in.size() != 2) return call.unmapped();
  return Relation::everything().restrict_inputs(main_diagonal(call.in));
}

Relation map_trace_backward(const Call& call) {
  if (call.out.size() != 2) return call.unmapped();
  return Relation::everything().restrict_outputs(main_diagonal(call.out));
}

// How padding continues past the edge. kUnknown: the mode is not on record, so the rim may hold any element of its
// line.
enum class Edge : std::uint8_t { kZero, kReflect, kReplicate, kUnknown };

std::int64_t padded_source(std::int64_t c, std::int64_t size, Edge edge) {
  if (c >= 0 && c < size) return c;
  switch (edge) {
    case Edge::kZero:
      return Link::kNone;
    case Edge::kReflect:
      return c < 0 ? -c : 2 * (size - 1) - c;
    case Edge::kReplicate:
      return c < 0 ? 0 : size - 1;
    case Edge::kUnknown:
      break;
  }
  return Link::kAll;
}

// `padded` has the rim, `inner` has not; the amounts come in pairs, last dimension first.
Relation padding(const Call& call, bool backward, const char* amounts_name, Edge edge) {
  const Sizes& padded = backward ? call.in : call.out;
  const Sizes& inner = backward ? call.out : call.in;
  const auto amounts = call.ints(amounts_name);
  const auto rank = static_cast<int>(inner.size());
  if (!amounts || padded.size() != inner.size()) return call.unmapped();
  std::vector<Link> links;
  for (int d = 0; d < rank; ++d) {
    const auto pair = static_cast<std::size_t>(rank - 1 - d);
    const std::int64_t before = 2 * pair < amounts->size() ? (*amounts)[2 * pair] : 0;
    const std::int64_t after = 2 * pair + 1 < amounts->size() ? (*amounts)[2 * pair + 1] : 0;
    if (before + after + inner[d] != padded[d]) return call.unmapped();
    if (before == 0 && after == 0) {
      links.push_back(same(d, d));
      continue;
    }
    Sizes source(padded[d]);
    for (std::int64_t c = 0; c < padded[d]; ++c) source[c] = padded_source(c - before, inner[d], edge);
    links.push_back(backward ? scatter(d, d, std::move(source)) : points(d, d, std::move(source)));
  }
  return Relation::product(std::move(links), call.out, call.in);
}

Relation map_pad(const Call& call) {
  // A fill value is only allowed with the constant mode.
  const bool constant = call.scalar("value") != nullptr;
  return padding(call, false, "pad", constant ? Edge::kZero : Edge::kUnknown);
}
Relation map_constant_pad(const Call& call) { return padding(call, false, "pad", Edge::kZero); }
Relation map_circular_pad(const Call& call) { return padding(call, false, "pad", Edge::kUnknown); }
Relation map_reflect_pad(const Call& call) { return padding(call, false, "padding", Edge::kReflect); }
Relation map_replicate_pad(const Call& call) { return padding(call, false, "padding", Edge::kReplicate); }
Relation map_reflect_pad_backward(const Call& call) {
  return call.is("self") ? Relation::nothing() : padding(call, true, "padding", Edge::kReflect);
}
Relation map_replicate_pad_backward(const Call& call) {
  return call.is("self") ? Relation::nothing() : padding(call, true, "padding", Edge::kReplicate);
}

// Window w of the dimension holds [w * step, w * step + size), with the place inside as a new last dimension. In the
// forward direction (w, k) comes from exactly w * step + k.
Relation unfolding(const Call& call, bool backward, const char* dim_name) {
  const Sizes& whole = backward ? call.out : call.in;
  const Sizes& windows = backward ? call.in : call.out;
  const int dim = wrap(call.integer(dim_name, 0), std::max<std::size_t>(whole.size(), 1));
  const auto step = call.integer("step");
  if (dim < 0 || !step || windows.size() != whole.size() + 1) return call.unmapped();
  const std::int64_t length = windows.back();
  const std::int64_t count = windows[dim];
  // Seen as flat groups: [before, window, after, place] against [before, whole, after].
  Sizes low(count), high(count);
  for (std::int64_t w = 0; w < count; ++w) {
    low[w] = w * *step;
    high[w] = low[w] + length;
  }
  std::vector<Link> links;
  for (int d = 0; d < static_cast<int>(whole.size()); ++d) {
    if (d != dim) links.push_back(same(d, d));
  }
  if (!backward) {
    links.push_back(window(dim, dim, std::move(low), std::move(high)));
  } else {
    Sizes outputs, inputs;
    for (std::int64_t w = 0; w < count; ++w) {
      for (std::int64_t c = low[w]; c < high[w]; ++c) {
        outputs.push_back(c);
        inputs.push_back(w);
      }
    }
    links.push_back(pairs(dim, dim, std::move(outputs), std::move(inputs)));
  }
  return Relation::product(std::move(links), call.out, call.in);
}

Relation map_unfold(const Call& call) {
  if (call.is_view()) {
    Relation exact = by_memory(call);
    if (call.mapped) return exact;
    call.mapped = true;
  }
  return unfolding(call, false, "dimension");
}
Relation map_unfold_backward(const Call& call) { return unfolding(call, true, "dim"); }

// [.., C * r * r, H, W] against [.., C, H * r, W * r].
Relation pixels(const Call& call, bool shuffled_out, const char* factor_name) {
  const Sizes& packed = shuffled_out ? call.in : call.out;
  const Sizes& spread = shuffled_out ? call.out : call.in;
  const std::int64_t factor = call.integer(factor_name, 0);
  const std::size_t rank = packed.size();
  if (factor < 1 || rank < 3 || spread.size() != rank) return call.unmapped();
  std::int64_t batch = 1;
  for (std::size_t d = 0; d + 3 < rank; ++d) batch *= packed[d];
  const std::int64_t channels = spread[rank - 3];
  const std::int64_t height = packed[rank - 2];
  const std::int64_t width = packed[rank - 1];
  const Sizes packed_view{batch, channels, factor, factor, height, width};
  const Sizes spread_view{batch, channels, height, factor, width, factor};
  constexpr std::array<int, 6> kSpreadOfPacked{0, 1, 3, 5, 2, 4};
  std::vector<Link> links;
  for (int d = 0; d < 6; ++d) {
    links.push_back(shuffled_out ? same(kSpreadOfPacked[d], d) : same(d, kSpreadOfPacked[d]));
  }
  return shuffled_out ? Relation::product(std::move(links), spread_view, packed_view)
                      : Relation::product(std::move(links), packed_view, spread_view);
}
Relation map_pixel_shuffle(const Call& call) { return pixels(call, true, "upscale_factor"); }
Relation map_pixel_unshuffle(const Call& call) { return pixels(call, false, "downscale_factor"); }

Relation map_channel_shuffle(const Call& call) {
  const std::int64_t groups = call.integer("groups", 0);
  if (groups < 1 || call.in.size() < 2 || call.in != call.out || call.in[1] % groups != 0) return call.unmapped();
  const std::int64_t inside = call.in[1] / groups;
  Sizes from(call.in[1]);
  for (std::int64_t c = 0; c < call.in[1]; ++c) from[c] = c % groups * inside + c / groups;
  return along(call.in, call.out, 1, points(0, 0, std::move(from)));
}

// Complex numbers against pairs of reals: the last dimension of the real side is free.
Relation map_complex_view(const Call& call) {
  return leading(call.in, call.out, static_cast<int>(std::min(call.in.size(), call.out.size())));
}

}  // namespace

std::span<const Family> pattern_families() {
  static constexpr std::array kTable{
      Family{"repeat tile", map_repeat},
      Family{"repeat_interleave", map_repeat_interleave, "repeats"},
      Family{"tril triu", map_triangle},
      Family{"diag", map_diag},
      Family{"diagonal diagonal_copy linalg_diagonal", map_diagonal},
      Family{"diag_embed", map_diag_embed},
      Family{"diagflat", map_diagflat},
      Family{"diagonal_backward diagonal_scatter", map_into_diagonal},
      Family{"trace", map_trace},
      Family{"trace_backward", map_trace_backward},
      Family{"fill_diagonal_", pointwise},
      Family{"pad", map_pad},
      Family{"constant_pad_nd", map_constant_pad},
      Family{"_pad_circular", map_circular_pad},
      Family{"reflection_pad1d reflection_pad2d reflection_pad3d", map_reflect_pad},
      Family{"replication_pad1d replication_pad2d replication_pad3d", map_replicate_pad},
      Family{"reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward", map_reflect_pad_backward},
      Family{"replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
             map_replicate_pad_backward},
      Family{"unfold unfold_copy", map_unfold},
      Family{"unfold_backward", map_unfold_backward},
      Family{"pixel_shuffle", map_pixel_shuffle},
      Family{"pixel_unshuffle", map_pixel_unshuffle},
      Family{"channel_shuffle native_channel_shuffle", map_channel_shuffle},
      Family{"view_as_real view_as_real_copy view_as_complex view_as_complex_copy", map_complex_view},
  };
  return kTable;
}

}  // namespace sherlorch::maps
