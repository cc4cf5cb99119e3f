#include "adapter/parallel.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>

#include <numeric>

namespace sherlorch {

// at::parallel_for is a template over OpenMP's pragmas: compiled here without -fopenmp it would run on one thread, and
// with it, it would load a second OpenMP library beside the one in torch's wheel. So torch's own loop is borrowed, as
// it is compiled in libtorch: over a constant tensor that holds the numbers of the parts.
void run_in_parallel(std::int64_t grain, c10::function_ref<void(std::int64_t, std::int64_t)> f) {
  static at::TensorIterator* const parts = [] {
    // Not through the dispatcher: this may run in the middle of an op. Both live as long as the process.
    static auto* const numbers = new at::TensorBase(at::detail::empty_cpu({kParts}, c10::ScalarType::Long));
    std::iota(numbers->mutable_data_ptr<std::int64_t>(), numbers->mutable_data_ptr<std::int64_t>() + kParts, 0);
    return new at::TensorIterator(at::TensorIterator::borrowing_nullary_op(*numbers));
  }();
  // One row of parts a call, in order.
  parts->for_each(
      [&](char** data, const std::int64_t*, std::int64_t count, std::int64_t rows) {
        if (count == 0 || rows == 0) return;
        const std::int64_t begin = *reinterpret_cast<const std::int64_t*>(data[0]);
        f(begin, begin + count * rows);
      },
      grain);
}

}  // namespace sherlorch
