// The fields of a diagnosis, listed once: the writer and the reader both go through these lists, so that they cannot
// disagree. visit(v, x) calls v(key, x.member) for each member of x, which may be const.
#pragma once

#include <concepts>
#include <type_traits>

#include "sherlorch/diagnosis.h"

namespace sherlorch::json {

template <typename T, typename Struct>
concept Maybe = std::same_as<std::remove_const_t<T>, Struct>;

template <typename V, Maybe<SourceLocation> T>
void visit(V& v, T& x) {
  v("file", x.file);
  v("line", x.line);
  v("function", x.function);
}

template <typename V, Maybe<FinitenessCounts> T>
void visit(V& v, T& x) {
  v("numel", x.numel);
  v("nan", x.nan);
  v("pos_inf", x.pos_inf);
  v("neg_inf", x.neg_inf);
  v("first_nan", x.first_nan);
  v("first_pos_inf", x.first_pos_inf);
  v("first_neg_inf", x.first_neg_inf);
}

template <typename V, Maybe<Step> T>
void visit(V& v, T& x) {
  v("seq", x.seq);
  v("op_name", x.op_name);
  v("operator_name", x.operator_name);
  v("shape", x.shape);
  v("dtype", x.dtype);
  v("device", x.device);
  v("counts", x.counts);
  v("location", x.location);
  v("module_path", x.module_path);
  v("label", x.label);
  v("phase", x.phase);
  v("at_forward", x.at_forward);
  v("autograd_node", x.autograd_node);
  v("thread_name", x.thread_name);
  v("inherited", x.inherited);
  v("transition", x.transition);
  v("parents", x.parents);
  v("element", x.element);
  v("folded", x.folded);
}

template <typename V, Maybe<Operand> T>
void visit(V& v, T& x) {
  v("name", x.name);
  v("is_scalar", x.is_scalar);
  v("value", x.value);
  v("shape", x.shape);
  v("dtype", x.dtype);
  v("counts", x.counts);
  v("has_range", x.has_range);
  v("min", x.min);
  v("max", x.max);
  v("overwritten", x.overwritten);
  v("label", x.label);
}

template <typename V, Maybe<std::pair<std::string, double>> T>
void visit(V& v, T& x) {
  v("name", x.first);
  v("value", x.second);
}

template <typename V, Maybe<WitnessElement> T>
void visit(V& v, T& x) {
  v("index", x.index);
  v("value", x.value);
  v("text", x.text);
  v("operands", x.operands);
}

template <typename V, Maybe<Culprit> T>
void visit(V& v, T& x) {
  v("step", x.step);
  v("origin", x.origin);
  v("origin_label", x.origin_label);
  v("origin_detail", x.origin_detail);
  v("cause", x.cause);
  v("headline", x.headline);
  v("explanation", x.explanation);
  v("help", x.help);
  v("witness", x.witness);
  v("operands", x.operands);
  v("bad_samples", x.bad_samples);
  v("bad_sample_count", x.bad_sample_count);
  v("dropped_samples", x.dropped_samples);
  v("dropped_sample_count", x.dropped_sample_count);
  v("times", x.times);
  v("first_call", x.first_call);
  v("certain", x.certain);
  v("doubt", x.doubt);
  v("stack", x.stack);
  v("path", x.path);
}

template <typename V, Maybe<BlindSpot> T>
void visit(V& v, T& x) {
  v("kind", x.kind);
  v("count", x.count);
  v("text", x.text);
}

template <typename V, Maybe<Diagnosis> T>
void visit(V& v, T& x) {
  v("target", x.target);
  v("culprits", x.culprits);
  v("deliberate", x.deliberate);
  v("total_ops", x.total_ops);
  v("blind_spots", x.blind_spots);
  v("note", x.note);
}

}  // namespace sherlorch::json
