// The shadow of live storages: for the few storages that hold a non-finite value, which write made which bad bytes.
//
//   storage  | . . . N N . . . . I . . |     N: made by write 7, I: made by write 9
//   shadow   |  residents: (7: elements 3-4 of its output), (9: element 1 of its output)
//
// A resident is one write's output and those of its bad elements that are still in memory. Any later write to the same
// bytes takes them out of the older residents, be it good (a repair) or bad (a new culprit), so that every bad byte has
// exactly one resident. Storages without a bad value have no entry.
//
// Not thread-safe, but for maybe_shadowed(): the recorder's lock guards it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/base/element_set.h"
#include "core/base/geometry.h"
#include "core/base/ids.h"
#include "core/graph/op_record.h"
#include "core/graph/op_store.h"

namespace sherlorch {

// How the core holds a storage weakly without knowing torch: the adapter fills this in. A guard keeps the *address* of
// a storage from being given to another one, and nothing else alive.
struct StorageGuardOps {
  bool (*alive)(void* guard) noexcept = nullptr;          // somebody still owns the storage
  void (*release)(void* guard) noexcept = nullptr;        // gives the guard back
  const void* (*data)(void* guard) noexcept = nullptr;    // its bytes now; null if freed
  std::int64_t (*bytes)(void* guard) noexcept = nullptr;  // how many now
};

class Shadow {
 public:
  Shadow(OpStore* store, const StorageGuardOps& guards) : store_(store), guards_(guards) {}
  ~Shadow() { clear(); }
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // False only if the storage has no shadow. Any thread, no lock: one load from a counting filter.
  bool maybe_shadowed(StorageKey storage) const noexcept {
    return filter_[filter_slot(storage)].load(std::memory_order_relaxed) != 0;
  }
  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  bool has(StorageKey storage) const { return entries_.count(storage) != 0; }

  // Makes sure that the storage has an entry; takes the guard over (and gives it back at once if there was one).
  // `seq`: the op that does it.
  void open(StorageKey storage, void* guard, OpSeq seq);
  // True if the address has been this storage's from that op on: a record of it at `seq` or later means the same one.
  bool guarded_since(StorageKey storage, OpSeq seq) const {
    const auto entry = entries_.find(storage);
    return entry != entries_.end() && entry->second.opened <= seq;
  }

  // These bytes have been written by something: whatever was known of them is over.
  void erase(StorageKey storage, const Geometry& written);
  // `record` wrote output `output`, of which `bad` elements are non-finite. REQUIRES: open(storage) was called.
  // Takes the whole geometry out of older residents first.
  void write(StorageKey storage, const Geometry& written, OpRecord* record, std::uint16_t output,
             const ElementSet& bad);

  // The same without taking anything out of the others: these elements of `record`'s output are in memory and nobody's.
  void add_resident(StorageKey storage, OpRecord* record, std::uint16_t output, const ElementSet& bad);

  // Splits `bad`, elements of a tensor with this geometry, by the writes that made them. What no write accounts for is
  // returned in `*unexplained`.
  ReadEdges attribute(StorageKey storage, const Geometry& geometry, const ElementSet& bad,
                      ElementSet* unexplained) const;
  // What the shadow itself says is bad in a tensor of this geometry (for memory that can no longer be read).
  BadElements expected(StorageKey storage, const Geometry& geometry) const;
  // True if a resident has a byte in [begin, end).
  bool overlaps(StorageKey storage, std::int64_t begin, std::int64_t end) const;
  // The newest record among the residents that have a byte of this geometry; null if none.
  OpRecord* newest_writer(StorageKey storage, const Geometry& geometry) const;

  // View ops: the newest view record with exactly this geometry, if it is newer than `after`.
  void add_view(StorageKey storage, OpRecord* record);
  OpRecord* find_view(StorageKey storage, const Geometry& geometry, OpSeq after) const;
  // The same if no resident with a byte of this geometry is newer. Does not go through all residents of a long tensor
  // whose rows are written one by one.
  OpRecord* current_view(StorageKey storage, const Geometry& geometry) const;

  // A live shadowed storage, other than `self`, whose bytes hold [data, data + bytes); 0 if none. `*offset` is where.
  StorageKey find_by_address(const void* data, std::int64_t bytes, StorageKey self, std::int64_t* offset) const;
  // Lets `storage` (open) answer with the residents of `other` for the same bytes, which lie `offset` further there.
  void adopt(StorageKey storage, StorageKey other, std::int64_t offset, const Geometry& geometry);

  // Drops the entries of storages that nobody owns any more. Cost: one look at every entry; called when their number
  // has doubled since the last time, so it is constant a write in the long run.
  void sweep();
  bool wants_sweep() const noexcept { return entries_.size() >= sweep_at_; }
  void clear();

 private:
  struct Resident {
    OpRecord* writer = nullptr;
    std::uint16_t output = 0;
    std::int64_t delta = 0;  // bytes to add to an offset in this storage to get one in the writer's storage
    ElementSet live;         // elements of the writer's output, still in memory and bad
    std::int64_t end = 0;    // end of the byte range (in this storage); its beginning is the key
  };
  // Residents whose byte ranges are of about one length, by first byte. Those that overlap a range begin at most one
  // length before it, so one of the whole storage does not make the look-up of a row long.
  struct Layer {
    int log2_length = 0;  // their ranges are at most 2^log2_length bytes long, and more than half of that
    std::multimap<std::int64_t, Resident> residents;
  };
  struct Entry {
    void* guard = nullptr;
    OpSeq opened = 0;  // the op that opened it
    std::vector<Layer> layers;
    std::vector<OpRecord*> views;  // oldest first, at most kMaxViews

    void add(std::int64_t begin, Resident resident);
  };
  static constexpr std::size_t kMaxViews = 64;
  static constexpr std::size_t kFilterSize = 8192;
  static std::size_t filter_slot(StorageKey storage) noexcept {
    return (storage * 0x9e3779b97f4a7c15ull) >> 51;  // 13 bits
  }

  // f(layer, iterator) for residents with a byte in [begin, end); goes on where it returns nothing or true.
  template <typename EntryType, typename F>
  static void for_overlapping(EntryType& entry, std::int64_t begin, std::int64_t end, F&& f);
  void cover(Entry* entry, const Geometry& written);
  std::unordered_map<StorageKey, Entry>::iterator drop(std::unordered_map<StorageKey, Entry>::iterator entry);

  OpStore* store_;
  StorageGuardOps guards_;
  std::unordered_map<StorageKey, Entry> entries_;
  std::size_t sweep_at_ = 64;
  std::array<std::atomic<std::uint32_t>, kFilterSize> filter_{};
};

}  // namespace sherlorch
