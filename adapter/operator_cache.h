// Which operator is behind a RecordFunction, at the price of one look into a small table.
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/base/address_cache.h"
#include "core/graph/tables.h"
#include "core/operators/traits.h"

namespace sherlorch {

struct CachedOperator {
  // What RecordFunction::name() gives for it, a pointer into its schema and so unique to the overload, leads here. This
  // is the same as text, to notice a schema that was freed and another put in its place.
  std::string text;
  std::string overload;
  const char* short_name = "";  // "log" of "aten::log"
  OperatorId id = 0;            // 0: not an operator (a record without a schema)
  OperatorTraits traits;
  std::vector<std::uint8_t> written_args;  // schema arguments that it writes, hidden ones included
  std::size_t returns = 0;
  std::uint64_t written_returns = 0;  // a bit for each return value that is a written argument
  bool is_aten = false;
  // How many records nest inside a call, as a moving average in sixteenths; see silence_nested() in the observer.
  mutable std::atomic<std::uint32_t> nested{0};
  mutable std::atomic<std::uint32_t> calls{0};
};

// One a thread; fills itself from the process-wide operator table. Not thread-safe.
class OperatorCache {
 public:
  explicit OperatorCache(Tables* tables) : tables_(tables) {}

  // Null if the record has no schema (a container: a custom Function, the engine, a compiled region).
  const CachedOperator* find(const at::RecordFunction& record) {
    const char* name = record.name();
    const CachedOperator* const* known = known_.find(name);
    if (known != nullptr && (*known)->text == name) [[likely]]
      return *known;
    return find_slow(record, name);
  }

 private:
  const CachedOperator* find_slow(const at::RecordFunction& record, const char* name);

  Tables* tables_;
  AddressCache<const CachedOperator*> known_;  // by the name
};

}  // namespace sherlorch
