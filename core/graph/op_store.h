// Owner of the cold op records. A record lives as long as something descends from it: a shadowed storage that it wrote,
// or a later record that read what it wrote. Not thread-safe: the recorder's lock guards it.
#pragma once

#include <cstddef>
#include <memory>

#include "core/graph/op_record.h"

namespace sherlorch {

class OpStore {
 public:
  // Chosen: at about 1.2 KB a record in a chain of small ops, some 150 MB in a run that has been NaN for long.
  static constexpr std::size_t kDefaultCap = std::size_t{1} << 17;

  explicit OpStore(std::size_t cap = kDefaultCap) : cap_(cap) {}
  ~OpStore();
  OpStore(const OpStore&) = delete;
  OpStore& operator=(const OpStore&) = delete;

  // Takes the record in, with one reference that the caller gives back by release(). The writers and views that its
  // inputs point at must be alive; they get a reference each.
  OpRecord* add(std::unique_ptr<OpRecord> record);
  void retain(OpRecord* record) noexcept { ++record->references_; }
  // Gives a reference back; the last one frees the record and, in a loop and not by recursion, what only it held.
  void release(OpRecord* record) noexcept;

  // The newest record with this ticket that is an op; null if it is gone. Cost: linear from the newest one back.
  OpRecord* find(OpSeq seq) const noexcept {
    OpRecord* record = newest_;
    while (record != nullptr && (record->seq != seq || record->kind != OpKind::kOp)) record = record->older_;
    return record;
  }
  // The record that was taken in before this one; null if it is the oldest.
  static const OpRecord* older(const OpRecord& record) noexcept { return record.older_; }
  // The newest record of an op (not a view, not an origin); null if there is none.
  const OpRecord* newest_op() const noexcept {
    const OpRecord* record = newest_;
    while (record != nullptr && record->kind != OpKind::kOp) record = record->older_;
    return record;
  }
  // Calls f for each record, newest first, until f returns false.
  template <typename F>
  void backwards(F&& f) const {
    for (const OpRecord* record = newest_; record != nullptr; record = record->older_) {
      if (!f(*record)) return;
    }
  }
  std::size_t size() const noexcept { return size_; }
  std::uint64_t folded() const noexcept { return folded_; }

 private:
  void fold_oldest();

  std::size_t cap_;
  std::size_t size_ = 0;
  std::uint64_t folded_ = 0;
  OpRecord* oldest_ = nullptr;
  OpRecord* newest_ = nullptr;
};

}  // namespace sherlorch
