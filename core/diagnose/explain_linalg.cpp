// Factorizations and solvers. Whether a matrix is singular cannot be read off its range, so most of these say
// "probably"; a matrix of zeros is the certain case.
#include <cmath>

#include "core/diagnose/explain_internal.h"

namespace sherlorch::explaining {
namespace {

constexpr const char* kSingularHelp =
    "Add a small multiple of the identity before the factorization (A + eps * torch.eye(n)), use float64, or use "
    "torch.linalg.lstsq or pinv, which do not need an invertible matrix.";

Known matrix(const Context& context) { return context.get({"A", "self", "input", "LU"}); }

// A statement about a zero pivot, no surer than the operands allow. Empty if the matrix itself was bad.
Verdict singular(const Context& context, const char* step, const char* help) {
  const Known a = matrix(context);
  if (a.nonfinite() == Sure::kYes || a.holds_nan() == Sure::kYes) return {};
  if (a.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The matrix holds an infinity, and elimination makes inf - inf and inf / inf of it.",
                   "Find the op that made the infinity.");
  }
  const bool zero = a.equals(0) == Sure::kYes;
  const std::string why =
      zero ? std::string("The matrix is all zeros: ") + step
           : std::string(
                 "The matrix is finite. Probably it is singular (its rows depend on each other), or nearly so: ") +
                 step;
  return verdict(Cause::kDivisionByZero, why, help);
}

Verdict explain_inverse(const Context& context) {
  return singular(context, "a pivot is 0, and the inverse divides by it.", kSingularHelp);
}
Verdict explain_solve(const Context& context) {
  const Known b = context.get({"B", "other", "b"});
  if (b.holds(0) != Sure::kNo && context.result_nan()) {
    return verdict(Cause::kInvalidOperation,
                   "The right-hand side holds an infinity, and elimination makes inf - inf of it.",
                   "Find the op that made the infinity.");
  }
  return singular(context, "a pivot is 0, and the solution divides by it.", kSingularHelp);
}

Verdict explain_triangular(const Context& context) {
  const Known a = matrix(context);
  if (a.nonfinite() != Sure::kNo) return {};
  if (a.diagonal == 0) {
    return verdict(Cause::kDivisionByZero,
                   "Back substitution divides by the diagonal of the triangular matrix, and there is a 0 on it.",
                   kSingularHelp);
  }
  const bool no_zero = a.diagonal > 0 || (a.bounded() && a.equals(0) == Sure::kNo);
  if (no_zero && !context.result_inf()) return {};
  if (no_zero) {
    const std::string smallest = a.diagonal > 0 ? ": its smallest number is " + format_number(a.diagonal) : "";
    return verdict(Cause::kOverflow,
                   "Back substitution divides by the diagonal, which is not 0 here, and the quotient is too large for "
                   "the type" +
                       smallest + ".",
                   kSingularHelp);
  }
  return verdict(
      Cause::kDivisionByZero,
      a.equals(0) == Sure::kYes
          ? "The triangular matrix is all zeros, and back substitution divides by its diagonal."
          : "Back substitution divides by the diagonal of the triangular matrix. Probably there is a 0 on it.",
      kSingularHelp);
}

Verdict explain_logdet(const Context& context) {
  const Known a = matrix(context);
  if (context.has_result && context.result == -HUGE_VAL)
    return singular(context, "its determinant is 0, and log(0) is -inf.", kSingularHelp);
  if (context.has_result && std::isnan(context.result) && context.op == "logdet" && a.finite() == Sure::kYes) {
    return verdict(
        Cause::kInvalidOperation,
        "The matrix is finite and its logdet is nan: the determinant is negative, and the log of a negative "
        "number is not a real number.",
        "Use torch.linalg.slogdet, which gives the sign apart; a covariance must be symmetric and positive definite.");
  }
  return {};
}

Verdict explain_det(const Context& context) {
  const Known a = matrix(context);
  if (context.result_inf() && a.finite() == Sure::kYes) {
    return verdict(Cause::kOverflow,
                   "The determinant is a product of all pivots, with values up to " + bound_text(a.magnitude()) +
                       ", and passes the largest " + context.out.name + ".",
                   "Use torch.linalg.slogdet: it gives the log of the determinant.");
  }
  if (a.holds(0) != Sure::kNo) return singular(context, "", kSingularHelp);
  return {};
}

Verdict explain_cholesky(const Context& context) {
  Verdict result =
      singular(context, "a pivot is 0 or negative, and its square root is taken and divided by.",
               "Add a small multiple of the identity (jitter): A + eps * torch.eye(n); make A symmetric; use float64.");
  if (result.cause == Cause::kDivisionByZero && context.has_result && std::isnan(context.result) &&
      matrix(context).equals(0) != Sure::kYes) {
    result.cause = Cause::kInvalidOperation;
    result.explanation =
        "The matrix is finite. Probably it is not positive definite: a pivot is not above 0, and its square root is "
        "taken.";
  }
  return result;
}

Verdict explain_spectral(const Context& context) {
  const Known a = matrix(context);
  if (a.holds(0) != Sure::kNo) {
    return verdict(Cause::kInvalidOperation,
                   "The matrix holds an infinity, so the iteration makes inf - inf and inf / inf of it.",
                   "Find the op that made the infinity.");
  }
  return {};
}

Verdict explain_lstsq(const Context& context) {
  const Known a = matrix(context);
  if (a.holds(0) != Sure::kNo || a.nonfinite() != Sure::kNo) return explain_spectral(context);
  return singular(context, "the gels driver (the only one on CUDA) expects full rank and divides by 0.",
                  "Use driver='gelsd', which does not need full rank, or add a small multiple of the identity.");
}

}  // namespace

std::span<const Family> linalg_families() {
  static constexpr Family kTable[] = {
      {"linalg_inv", explain_inverse, nullptr},
      {"linalg_pinv", explain_spectral, nullptr},
      {"linalg_solve", explain_solve, nullptr},
      {"linalg_lu_solve", explain_solve, nullptr},
      {"lu_solve", explain_solve, nullptr},
      {"linalg_tensorsolve", explain_solve, nullptr},
      {"cholesky_solve", explain_solve, nullptr},
      {"cholesky_inverse", explain_inverse, nullptr},
      {"linalg_ldl_solve", explain_solve, nullptr},
      {"linalg_solve_triangular", explain_triangular, nullptr},
      {"linalg_lu_factor", explain_spectral, nullptr},
      {"linalg_lu", explain_spectral, nullptr},
      {"logdet", explain_logdet, nullptr},
      {"slogdet", explain_logdet, nullptr},
      {"linalg_det", explain_det, nullptr},
      {"linalg_cholesky", explain_cholesky, nullptr},
      {"linalg_eigh", explain_spectral, nullptr},
      {"linalg_eigvalsh", explain_spectral, nullptr},
      {"linalg_eig", explain_spectral, nullptr},
      {"linalg_svd", explain_spectral, nullptr},
      {"svd", explain_spectral, nullptr},
      {"linalg_svdvals", explain_spectral, nullptr},
      {"linalg_qr", explain_spectral, nullptr},
      {"linalg_lstsq", explain_lstsq, nullptr},
  };
  return kTable;
}

}  // namespace sherlorch::explaining
