// Losses and their derivatives.
#include <algorithm>
#include <array>
#include <utility>

#include "core/operators/relation_call.h"

namespace sherlorch::maps {
namespace {

constexpr std::int64_t kNoReduction = 0;  // at::Reduction::None

bool reduces(const Call& call) { return call.integer("reduction", 1) != kNoReduction; }

// Elementwise, then summed or averaged unless reduction is none.
Relation map_elementwise_loss(const Call& call) {
  return reduces(call) ? Relation::everything() : broadcast(call.in, call.out);
}

// One loss a row.
Relation map_row_loss(const Call& call) {
  if (reduces(call) || call.returned() > 0 || call.out.empty()) return Relation::everything();
  return call.in.empty() || call.in[0] != call.out[0] ? Relation::everything() : leading(call.in, call.out, 1);
}

// Classes are dimension 1 of [N, C, d..], or the only one of [C]: as [N, C, D].
struct Classes {
  std::int64_t samples = 1, classes = 1, places = 1;
  Sizes view() const { return {samples, classes, places}; }
  Sizes target_view() const { return {samples, 1, places}; }
};

std::optional<Classes> classes_of(const Sizes& scores, const Sizes& target) {
  Classes result;
  if (scores.empty()) return std::nullopt;
  if (scores.size() == 1) {
    result.classes = scores[0];
  } else {
    result.samples = scores[0];
    result.classes = scores[1];
    for (std::size_t d = 2; d < scores.size(); ++d) result.places *= scores[d];
  }
  if (numel(target) != result.samples * result.places) return std::nullopt;
  return result;
}

std::string_view scores_name(const Call& call) { return call.tensor("self") != nullptr ? "self" : "input"; }

// The linear places in [N, C, D] of each target's class; those ignored left out. Empty optional: not on record.
std::optional<Sizes> target_places(const Call& call, const Classes& classes) {
  const Sizes* target = call.values("target");
  if (target == nullptr) return std::nullopt;
  const std::int64_t ignored = call.integer("ignore_index", -100);
  Sizes places(target->size(), Link::kNone);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const std::int64_t c = (*target)[k];
    const auto position = static_cast<std::int64_t>(k);
    if (c == ignored || c < 0 || c >= classes.classes) continue;
    places[k] = (position / classes.places * classes.classes + c) * classes.places + position % classes.places;
  }
  return places;
}

ElementSet named(const Sizes& indices) {
  Sizes kept;
  for (std::int64_t index : indices) {
    if (index >= 0) kept.push_back(index);
  }
  return ElementSet::of(std::move(kept));
}

// Of the class weights only those of the target classes are read.
Relation class_weights(const Call& call, const Classes& classes) {
  auto rows = target_places(call, classes);
  if (!rows) return Relation::everything();
  for (std::int64_t& place : *rows) place = place < 0 ? Link::kNone : place / classes.places % classes.classes;
  if (reduces(call) || call.returned() > 0) return Relation::everything().restrict_inputs(named(*rows));
  return Relation::function(*std::move(rows));
}

// Of the scores only those of the target classes are read.
Relation map_nll(const Call& call) {
  const std::string_view scores = scores_name(call);
  const auto score_shape = call.shape(scores);
  const auto target_shape = call.shape("target");
  if (!score_shape || !target_shape) return call.unmapped();
  const auto classes = classes_of(*score_shape, *target_shape);
  if (!classes) return call.unmapped();
  const auto places = target_places(call, *classes);
  if (call.is("weight")) return class_weights(call, *classes);
  if (!call.is(scores)) return Relation::everything();
  if (call.returned() > 0) return Relation::nothing();  // the total weight
  if (reduces(call)) {
    return places ? Relation::everything().restrict_inputs(named(*places)) : Relation::everything();
  }
  if (places) return Relation::function(*places);
  return Relation::product({same(0, 0), same(2, 2)}, classes->target_view(), classes->view());
}

// log_softmax along the classes, then nll; or class probabilities as the target.
Relation map_cross_entropy(const Call& call) {
  const auto scores = call.shape("self");
  const auto target = call.shape("target");
  if (!scores || !target) return call.unmapped();
  const bool probabilities =
      *scores == *target && !scores->empty() && call.values("target") == nullptr && numel(call.out) != numel(*scores);
  if (*scores == *target && !probabilities) return Relation::everything();
  if (call.is("target") && reduces(call)) return Relation::everything();
  if (call.is("weight") && (probabilities || call.number("label_smoothing", 1) != 0)) return Relation::everything();
  if (probabilities) {
    if (reduces(call) || scores->size() < 2) return Relation::everything();
    const auto classes = classes_of(*scores, call.out);
    if (!classes) return call.unmapped();
    return Relation::product({same(0, 0), same(2, 2)}, classes->target_view(), classes->view());
  }
  const auto classes = classes_of(*scores, *target);
  if (!classes) return call.unmapped();
  if (call.is("weight")) return class_weights(call, *classes);
  if (!reduces(call)) {
    if (call.is("target")) return Relation::identity();
    return Relation::product({same(0, 0), same(2, 2)}, classes->target_view(), classes->view());
  }
  const auto places = target_places(call, *classes);
  if (!places || classes->places != 1) return Relation::everything();
  ElementSet rows;  // samples with the ignored class do not take part
  for (std::size_t k = 0; k < places->size(); ++k) {
    const auto row = static_cast<std::int64_t>(k);
    if ((*places)[k] >= 0) rows.append(row * classes->classes, (row + 1) * classes->classes);
  }
  return Relation::everything().restrict_inputs(std::move(rows));
}

// The gradient is written at the target classes only; scores give their shape.
Relation map_nll_backward(const Call& call) {
  const auto target_shape = call.shape("target");
  if (call.is("self")) return Relation::nothing();
  if (!target_shape) return call.unmapped();
  const auto classes = classes_of(call.out, *target_shape);
  if (!classes) return call.unmapped();
  const auto places = target_places(call, *classes);
  if (call.is("grad_output") && !reduces(call)) {
    if (places) return Relation::product({scatter(0, 0, *places)}, {}, {});
    return Relation::product({same(0, 0), same(2, 2)}, classes->view(), classes->target_view());
  }
  if (call.is("weight")) {
    Relation relation = Relation::product({same(1, 0)}, classes->view(), {classes->classes});
    return places ? std::move(relation).restrict_outputs(named(*places)) : relation;
  }
  return places ? Relation::everything().restrict_outputs(named(*places)) : Relation::everything();
}

}  // namespace

std::span<const Family> loss_families() {
  static constexpr std::array kTable{
      Family{"mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div "
             "poisson_nll_loss soft_margin_loss hinge_embedding_loss margin_ranking_loss",
             map_elementwise_loss},
      Family{"mse_loss_backward smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward "
             "soft_margin_loss_backward",
             pointwise},
      Family{"cosine_embedding_loss triplet_margin_loss multi_margin_loss multilabel_margin_loss", map_row_loss},
      Family{"nll_loss nll_loss_nd nll_loss2d nll_loss_forward nll_loss2d_forward", map_nll, "target"},
      Family{"cross_entropy_loss", map_cross_entropy, "target"},
      Family{"nll_loss_backward nll_loss2d_backward", map_nll_backward, "target"},
      Family{"ctc_loss _ctc_loss _ctc_loss_backward _cudnn_ctc_loss multi_margin_loss_backward "
             "multilabel_margin_loss_forward "
             "multilabel_margin_loss_backward",
             map_everything},
  };
  return kTable;
}

}  // namespace sherlorch::maps
