#include "core/operators/relation.h"

#include <array>
#include <utility>

#include "core/operators/relation_image.h"

namespace sherlorch {
namespace {

std::int64_t product_of(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (std::int64_t size : sizes) product *= size;
  return product;
}

}  // namespace

Relation Relation::nothing() {
  Relation relation;
  relation.kind_ = Kind::kNothing;
  return relation;
}

Relation Relation::everything() { return Relation(); }

Relation Relation::identity() {
  Relation relation;
  relation.kind_ = Kind::kIdentity;
  return relation;
}

Relation Relation::box(std::vector<int> source) {
  Relation relation;
  relation.kind_ = Kind::kBox;
  relation.source_ = std::move(source);
  return relation;
}

Relation Relation::function(std::vector<std::int64_t> indices) {
  Link link;
  link.kind = Link::Kind::kPoints;
  link.a = std::move(indices);
  std::vector<Link> links;
  links.push_back(std::move(link));
  return product(std::move(links), {}, {});
}

Relation Relation::product(std::vector<Link> links, std::vector<std::int64_t> out_view,
                           std::vector<std::int64_t> in_view) {
  Relation relation;
  relation.kind_ = Kind::kProduct;
  relation.links_ = std::move(links);
  relation.out_view_ = std::move(out_view);
  relation.in_view_ = std::move(in_view);
  return relation;
}

Relation Relation::restrict_outputs(ElementSet only) && {
  only_outputs_ = outputs_restricted_ ? set_intersection(only_outputs_, only) : std::move(only);
  outputs_restricted_ = true;
  return std::move(*this);
}

Relation Relation::restrict_inputs(ElementSet only) && {
  only_inputs_ = inputs_restricted_ ? set_intersection(only_inputs_, only) : std::move(only);
  inputs_restricted_ = true;
  return std::move(*this);
}

ElementSet Relation::sources(const ElementSet& wanted, const ElementSet& candidates,
                             std::span<const std::int64_t> out_sizes, std::span<const std::int64_t> in_sizes) const {
  if (!restricted()) return across(true, wanted, candidates, out_sizes, in_sizes);
  const ElementSet& given = outputs_restricted_ ? set_intersection(wanted, only_outputs_) : wanted;
  if (!inputs_restricted_) return across(true, given, candidates, out_sizes, in_sizes);
  return across(true, given, set_intersection(candidates, only_inputs_), out_sizes, in_sizes);
}

ElementSet Relation::reached(const ElementSet& wanted, const ElementSet& given, std::span<const std::int64_t> out_sizes,
                             std::span<const std::int64_t> in_sizes) const {
  if (!restricted()) return across(false, given, wanted, out_sizes, in_sizes);
  const ElementSet& from = inputs_restricted_ ? set_intersection(given, only_inputs_) : given;
  if (!outputs_restricted_) return across(false, from, wanted, out_sizes, in_sizes);
  return across(false, from, set_intersection(wanted, only_outputs_), out_sizes, in_sizes);
}

ElementSet Relation::across(bool to_input, const ElementSet& given, const ElementSet& candidates,
                            std::span<const std::int64_t> out_sizes, std::span<const std::int64_t> in_sizes) const {
  if (given.empty() || candidates.empty() || kind_ == Kind::kNothing) return {};
  if (kind_ == Kind::kIdentity) return set_intersection(given, candidates);
  if (kind_ == Kind::kEverything) return candidates;

  if (kind_ == Kind::kBox) {
    std::vector<Link> links;
    for (std::size_t dim = 0; dim < source_.size() && dim < in_sizes.size(); ++dim) {
      const int from = source_[dim];
      // A dimension of one element has nothing to choose from: broadcasting needs no link.
      if (from < 0 || in_sizes[dim] == 1 || static_cast<std::size_t>(from) >= out_sizes.size()) continue;
      Link link;
      link.out_dim = from;
      link.in_dim = static_cast<int>(dim);
      links.push_back(std::move(link));
    }
    return relation_image(links, to_input ? out_sizes : in_sizes, to_input ? in_sizes : out_sizes, to_input, given,
                          candidates);
  }
  const std::array out_flat{product_of(out_sizes)};
  const std::array in_flat{product_of(in_sizes)};
  const std::span<const std::int64_t> out_view =
      out_view_.empty() ? std::span<const std::int64_t>(out_flat) : out_view_;
  const std::span<const std::int64_t> in_view = in_view_.empty() ? std::span<const std::int64_t>(in_flat) : in_view_;
  // A record whose shapes do not fit the map (a schema that changed its meaning): say everything rather than too
  // little.
  if (product_of(out_view) != out_flat[0] || product_of(in_view) != in_flat[0]) return candidates;
  return relation_image(links_, to_input ? out_view : in_view, to_input ? in_view : out_view, to_input, given,
                        candidates);
}

}  // namespace sherlorch
