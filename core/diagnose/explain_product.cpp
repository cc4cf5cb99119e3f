// Sums of products: matrix products, convolutions, and Fourier transforms.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

struct Factors {
  Known a;
  Known b;
  Known added;             // bias, or the matrix that the product is added to
  std::int64_t terms = 0;  // products in one sum; 0 if unknown
};

std::int64_t product_of(const std::vector<std::int64_t>& sizes, std::size_t from) {
  std::int64_t n = 1;
  for (std::size_t d = from; d < sizes.size(); ++d) n *= sizes[d];
  return n;
}

bool is_convolution(const Context& context) { return context.op.find("conv") != std::string::npos; }

Factors factors_of(const Context& context) {
  Factors f;
  f.a = context.get({"mat1", "batch1", "vec1", "input", "mat"});
  if (f.a.absent())
    f.a = context.get({"self", "tensors[0]", "tensors"});
  else
    f.added = context.get({"bias", "self"});
  f.b = context.get({"mat2", "batch2", "vec2", "weight", "vec", "other", "tensor", "tensors[1]"});
  if (f.a.slice())
    f.terms = f.a.count;
  else if (f.b.slice())
    f.terms = f.b.count;
  else if (is_convolution(context) && f.b.operand && f.b.operand->shape.size() > 1)
    f.terms = product_of(f.b.operand->shape, 1);
  else if (f.a.operand && !f.a.operand->shape.empty())
    f.terms = f.a.operand->shape.back();
  return f;
}

std::string products_text(const Factors& f) {
  return count_of(f.terms, "product", "products") + " of values up to " + bound_text(f.a.magnitude()) + " and " +
         bound_text(f.b.magnitude());
}

bool told(const Factors& f) { return f.terms > 0 && f.a.bounded() && f.b.bounded(); }

std::string help_for(const Context& context) {
  if (context.facts.phase == Phase::kBackward) return advice::kExploding;
  return advice::overflow(context.out) +
         " If activations grow with every layer, check the normalisation and the initialisation.";
}

Verdict explain_product(const Context& context) {
  const Factors f = factors_of(context);
  if (context.result_nan()) {
    const Sure any = either(f.a.holds(0), f.b.holds(0));
    if (any != Sure::kNo) {
      const bool left = f.a.holds(0) != Sure::kNo;
      const Known& other = left ? f.b : f.a;
      const std::string side = left ? "left" : "right";
      const Sure zero = other.equals(0);
      const Sure two = left ? both(f.a.holds(1), f.a.holds(-1)) : both(f.b.holds(1), f.b.holds(-1));
      std::string why = std::string("The ") + side + " operand holds an infinity. ";
      if (zero != Sure::kNo)
        why += "The other one reaches 0, and 0 times an infinity has no value.";
      else if (two != Sure::kNo)
        why += "With both signs of it in one sum, inf - inf has no value.";
      else
        why += "Summed with different signs, inf - inf has no value.";
      return verdict(
          Cause::kInvalidOperation, why,
          "Find the op that made the infinity. A mask of -inf belongs to the scores, not into a matrix product.");
    }
    if (!told(f)) return {};
  }
  if (!told(f) || !context.out.known()) return {};
  double most = static_cast<double>(f.terms) * f.a.magnitude() * f.b.magnitude();
  if (f.added.bounded()) most += f.added.magnitude();
  if (!context.out.passes(most) || f.a.bad > 0 || f.b.bad > 0) return {};
  const std::string ends = context.out.largest_text() + ", the largest " + context.out.name;
  if (context.has_result && std::isnan(context.result)) {
    return verdict(Cause::kOverflow,
                   "The dot product of " + products_text(f) + " can pass " + ends +
                       ", and partial sums that overflow both ways cancel to nan.",
                   help_for(context));
  }
  return verdict(Cause::kOverflow, "The dot product of " + products_text(f) + " passes " + ends + ".",
                 help_for(context));
}

std::string product_subject(const Context& context) {
  const Factors f = factors_of(context);
  if (!told(f)) return "";
  return (is_convolution(context) ? "convolution of " : "dot product of ") + products_text(f);
}

Verdict explain_fft(const Context& context) {
  const Known x = context.self();
  if (context.result_nan() && x.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "Every output is a sum over the whole signal with both signs, so one infinity gives inf - inf.",
                   "Find the op that made the infinity.");
  }
  if (!x.bounded() || x.bad > 0) return {};
  if (!context.out.passes(static_cast<double>(x.count) * x.magnitude())) return {};
  return verdict(Cause::kOverflow,
                 "A Fourier transform sums " + values_text(x) + ", which can pass " + context.out.largest_text() +
                     ", the largest " + context.out.name + ".",
                 "Transform in float32 or float64, or use norm='ortho', or remove the mean first.");
}
std::string fft_subject(const Context& context) {
  const Known x = context.self();
  return x.bounded() ? context.op + " of " + values_text(x) : "";
}

Verdict explain_matrix_growth(const Context& context) {
  const Known x = context.self();
  if (!x.bounded() || x.bad > 0 || x.magnitude() == 0) return {};
  const std::int64_t width = x.operand && !x.operand->shape.empty() ? x.operand->shape.back() : 1;
  const double size = static_cast<double>(width) * x.magnitude();  // bounds the largest eigenvalue
  const double grown = context.op == "matrix_exp" || context.op == "linalg_matrix_exp"
                           ? size
                           : context.number("n", 1) * std::log(std::fmax(size, 1));
  if (!context.out.known() || grown <= std::log(context.out.largest)) return {};
  return verdict(Cause::kOverflow,
                 "Probably it grows too fast: the matrix has values up to " + bound_text(x.magnitude()) +
                     ", and its power or exponential passes " + context.out.largest_text() + ", the largest " +
                     context.out.name + ".",
                 "Scale the matrix down, or work in float64.");
}

}  // namespace

std::span<const Family> product_families() {
  static constexpr Family kTable[] = {
      {"matmul", explain_product, product_subject},
      {"mm", explain_product, product_subject},
      {"bmm", explain_product, product_subject},
      {"mv", explain_product, product_subject},
      {"dot", explain_product, product_subject},
      {"addmm", explain_product, product_subject},
      {"addmv", explain_product, product_subject},
      {"addbmm", explain_product, product_subject},
      {"baddbmm", explain_product, product_subject},
      {"addr", explain_product, product_subject},
      {"linear", explain_product, product_subject},
      {"addmm_activation", explain_product, product_subject},
      {"einsum", explain_product, product_subject},
      {"tensordot", explain_product, product_subject},
      {"bilinear", explain_product, product_subject},
      {"mkldnn_linear", explain_product, product_subject},
      {"scaled_mm", explain_product, product_subject},
      {"chain_matmul", explain_product, product_subject},
      {"conv1d", explain_product, product_subject},
      {"conv2d", explain_product, product_subject},
      {"conv3d", explain_product, product_subject},
      {"convolution", explain_product, product_subject},
      {"conv_transpose1d", explain_product, product_subject},
      {"conv_transpose2d", explain_product, product_subject},
      {"conv_transpose3d", explain_product, product_subject},
      {"mkldnn_convolution", explain_product, product_subject},
      {"cudnn_convolution", explain_product, product_subject},
      {"slow_conv2d_forward", explain_product, product_subject},
      {"fft_fft", explain_fft, fft_subject},
      {"fft_ifft", explain_fft, fft_subject},
      {"fft_rfft", explain_fft, fft_subject},
      {"fft_irfft", explain_fft, fft_subject},
      {"fft_fft2", explain_fft, fft_subject},
      {"fft_rfft2", explain_fft, fft_subject},
      {"fft_fftn", explain_fft, fft_subject},
      {"fft_rfftn", explain_fft, fft_subject},
      {"fft_r2c", explain_fft, fft_subject},
      {"fft_c2c", explain_fft, fft_subject},
      {"fft_c2r", explain_fft, fft_subject},
      {"stft", explain_fft, fft_subject},
      {"matrix_exp", explain_matrix_growth, nullptr},
      {"linalg_matrix_exp", explain_matrix_growth, nullptr},
      {"matrix_power", explain_matrix_growth, nullptr},
      {"linalg_matrix_power", explain_matrix_growth, nullptr},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
