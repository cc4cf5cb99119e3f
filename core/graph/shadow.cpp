#include "core/graph/shadow.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <type_traits>
#include <utility>

namespace sherlorch {

namespace {

// The geometry of a resident's writer output as it lies in this storage (see Resident::delta).
const Geometry& geometry_of(const OpRecord& writer, std::uint16_t output) {
  return writer.outputs[output].facts.geometry;
}

Geometry shifted(Geometry geometry, std::int64_t bytes) {
  geometry.offset += bytes;
  return geometry;
}

bool same_layout(const Geometry& a, const Geometry& b) { return a == b; }

// True if an element of `geometry` has a byte in [byte, byte + size).
bool covers(const Geometry& geometry, std::int64_t byte, std::int64_t size) {
  if (geometry.linear_containing(byte) >= 0) return true;
  return size > static_cast<std::int64_t>(geometry.item_size) && [&] {
    for (std::int64_t b = byte; b < byte + size; b += geometry.item_size) {
      if (geometry.linear_containing(b) >= 0) return true;
    }
    return false;
  }();
}

// Elements of `mine` (out of `live`) that have a byte inside `written`. A shortcut for the usual case, rows of memory.
ElementSet covered_elements(const Geometry& mine, const ElementSet& live, const Geometry& written) {
  if (written.numel() == 0) return {};
  if (same_layout(mine, written)) return live;
  if (written.contiguous() && written.begin_byte() <= mine.begin_byte() && mine.end_byte() <= written.end_byte()) {
    return live;
  }
  if (written.contiguous() && mine.contiguous()) {
    const auto item = static_cast<std::int64_t>(mine.item_size);
    const std::int64_t first = std::max<std::int64_t>(0, (written.begin_byte() - mine.offset) / item);
    const std::int64_t last = std::min(mine.numel(), (written.end_byte() - mine.offset + item - 1) / item);
    if (last <= first) return {};
    return set_intersection(live, ElementSet::range(first, last));
  }
  ElementSet covered;
  live.for_each([&](std::int64_t i) {
    if (covers(written, mine.byte_of(i), mine.item_size)) covered.append(i, i + 1);
    return true;
  });
  return covered;
}

}  // namespace

template <typename EntryType, typename F>
void Shadow::for_overlapping(EntryType& entry, std::int64_t begin, std::int64_t end, F&& f) {
  for (auto& size_class : entry.classes) {
    auto it = size_class.residents.lower_bound(begin - size_class.longest);
    for (; it != size_class.residents.end() && it->first < end; ++it) {
      if (it->second.end <= begin) continue;
      if constexpr (std::is_void_v<decltype(f(it))>) {
        f(it);
      } else if (!f(it)) {
        return;
      }
    }
  }
}

void Shadow::add(Entry* entry, std::int64_t begin, Resident resident) {
  const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(1, resident.end - begin));
  const auto longest = static_cast<std::int64_t>(std::bit_ceil(length));
  auto found = std::find_if(entry->classes.begin(), entry->classes.end(),
                            [&](const SizeClass& each) { return each.longest == longest; });
  if (found == entry->classes.end()) found = entry->classes.insert(found, SizeClass{longest, {}});
  found->residents.emplace(begin, std::move(resident));
}

void Shadow::open(StorageKey storage, void* guard) {
  auto [entry, added] = entries_.try_emplace(storage);
  if (!added) {
    guards_.release(guard);
    return;
  }
  entry->second.guard = guard;
  filter_[filter_slot(storage)].fetch_add(1, std::memory_order_relaxed);
}

// Takes what `written` covers out of the residents of this entry.
void Shadow::cover(Entry* entry, const Geometry& written) {
  std::vector<OpRecord*> emptied;
  for_overlapping(*entry, written.begin_byte(), written.end_byte(), [&](auto it) {
    Resident& resident = it->second;
    const Geometry mine = shifted(geometry_of(*resident.writer, resident.output), -resident.delta);
    const ElementSet covered = covered_elements(mine, resident.live, written);
    if (covered.empty()) return;
    resident.live = set_difference(resident.live, covered);
    if (resident.live.empty()) emptied.push_back(resident.writer);
  });
  if (emptied.empty()) return;
  for (SizeClass& each : entry->classes) {
    auto it = each.residents.lower_bound(written.begin_byte() - each.longest);
    while (it != each.residents.end() && it->first < written.end_byte()) {
      it = it->second.live.empty() ? each.residents.erase(it) : std::next(it);
    }
  }
  std::erase_if(entry->classes, [](const SizeClass& each) { return each.residents.empty(); });
  for (OpRecord* writer : emptied) store_->release(writer);
}

void Shadow::erase(StorageKey storage, const Geometry& written) {
  auto found = entries_.find(storage);
  if (found == entries_.end() || written.numel() == 0) return;
  cover(&found->second, written);
  if (found->second.classes.empty()) drop(found);
}

void Shadow::write(StorageKey storage, const Geometry& written, OpRecord* record, std::uint16_t output,
                   const ElementSet& bad) {
  cover(&entries_.find(storage)->second, written);
  if (!bad.empty()) add_resident(storage, record, output, bad);
}

void Shadow::add_resident(StorageKey storage, OpRecord* record, std::uint16_t output, const ElementSet& bad) {
  Entry& entry = entries_.find(storage)->second;
  const Geometry& written = geometry_of(*record, output);
  store_->retain(record);
  Resident resident;
  resident.writer = record;
  resident.output = output;
  resident.live = bad;
  resident.end = written.end_byte();
  add(&entry, written.begin_byte(), std::move(resident));
}

std::vector<ReadEdge> Shadow::attribute(StorageKey storage, const Geometry& geometry, const ElementSet& bad,
                                        ElementSet* unexplained) const {
  std::vector<ReadEdge> edges;
  *unexplained = bad;
  auto found = entries_.find(storage);
  if (found == entries_.end() || bad.empty()) return edges;
  for_overlapping(found->second, geometry.begin_byte(), geometry.end_byte(), [&](auto it) {
    if (unexplained->empty()) return;
    const Resident& resident = it->second;
    const Geometry mine = shifted(geometry_of(*resident.writer, resident.output), -resident.delta);
    ElementSet explained;
    if (same_layout(mine, geometry)) {
      explained = set_intersection(*unexplained, resident.live);
    } else if (mine.contiguous() && geometry.contiguous() && mine.item_size == geometry.item_size &&
               (geometry.offset - mine.offset) % static_cast<std::int64_t>(mine.item_size) == 0) {
      const std::int64_t shift = (geometry.offset - mine.offset) / static_cast<std::int64_t>(mine.item_size);
      ElementSet moved;
      const std::int64_t numel = geometry.numel();
      for (const Run& run : resident.live.runs()) {
        const std::int64_t begin = std::max<std::int64_t>(0, run.begin - shift);
        const std::int64_t end = std::min(numel, run.end - shift);
        if (begin < end) moved.append(begin, end);
      }
      if (resident.live.coarse()) moved.mark_coarse();
      explained = set_intersection(*unexplained, moved);
    } else {
      unexplained->for_each([&](std::int64_t i) {
        const std::int64_t byte = geometry.byte_of(i);
        std::int64_t theirs = mine.linear_containing(byte);
        if (theirs < 0 && geometry.item_size > mine.item_size) {  // a wider element, e.g. complex over its parts
          for (std::int64_t b = byte; b < byte + geometry.item_size && theirs < 0; b += mine.item_size) {
            const std::int64_t at = mine.linear_containing(b);
            if (at >= 0 && resident.live.contains(at)) theirs = at;
          }
        } else if (theirs >= 0 && geometry.item_size > mine.item_size && !resident.live.contains(theirs)) {
          for (std::int64_t b = byte + mine.item_size; b < byte + geometry.item_size; b += mine.item_size) {
            const std::int64_t at = mine.linear_containing(b);
            if (at >= 0 && resident.live.contains(at)) theirs = at;
          }
        }
        if (theirs >= 0 && resident.live.contains(theirs)) explained.append(i, i + 1);
        return true;
      });
    }
    if (explained.empty()) return;
    *unexplained = set_difference(*unexplained, explained);
    ReadEdge edge;
    edge.writer = resident.writer;
    edge.output = resident.output;
    edge.delta = resident.delta;
    edge.elements = std::move(explained);
    edges.push_back(std::move(edge));
  });
  return edges;
}

BadElements Shadow::expected(StorageKey storage, const Geometry& geometry) const {
  BadElements expected;
  auto found = entries_.find(storage);
  if (found == entries_.end()) return expected;
  for_overlapping(found->second, geometry.begin_byte(), geometry.end_byte(), [&](auto it) {
    const Resident& resident = it->second;
    const Geometry mine = shifted(geometry_of(*resident.writer, resident.output), -resident.delta);
    const BadElements& bad = resident.writer->outputs[resident.output].bad;
    std::vector<std::int64_t> nan, pos, neg;
    // Only those in question: a row of a long tensor must not cost what the tensor does.
    covered_elements(mine, resident.live, geometry).for_each([&](std::int64_t i) {
      const std::int64_t at = geometry.linear_containing(mine.byte_of(i));
      if (at < 0) return true;
      (bad.nan.contains(i) ? nan : bad.pos_inf.contains(i) ? pos : neg).push_back(at);
      return true;
    });
    expected.nan = set_union(expected.nan, ElementSet::of(std::move(nan)));
    expected.pos_inf = set_union(expected.pos_inf, ElementSet::of(std::move(pos)));
    expected.neg_inf = set_union(expected.neg_inf, ElementSet::of(std::move(neg)));
  });
  return expected;
}

bool Shadow::overlaps(StorageKey storage, std::int64_t begin, std::int64_t end) const {
  auto found = entries_.find(storage);
  if (found == entries_.end()) return false;
  bool any = false;
  for_overlapping(found->second, begin, end, [&](auto) {
    any = true;
    return false;
  });
  return any;
}

OpRecord* Shadow::newest_writer(StorageKey storage, const Geometry& geometry) const {
  auto found = entries_.find(storage);
  if (found == entries_.end()) return nullptr;
  OpRecord* newest = nullptr;
  for_overlapping(found->second, geometry.begin_byte(), geometry.end_byte(), [&](auto it) {
    if (newest == nullptr || it->second.writer->seq > newest->seq) newest = it->second.writer;
  });
  return newest;
}

void Shadow::add_view(StorageKey storage, OpRecord* record) {
  auto found = entries_.find(storage);
  if (found == entries_.end()) return;
  std::vector<OpRecord*>& views = found->second.views;
  const Geometry& geometry = record->outputs.front().facts.geometry;
  store_->retain(record);
  for (auto it = views.begin(); it != views.end(); ++it) {
    if ((*it)->outputs.front().facts.geometry == geometry) {
      store_->release(*it);
      views.erase(it);
      break;
    }
  }
  if (views.size() >= kMaxViews) {
    store_->release(views.front());
    views.erase(views.begin());
  }
  views.push_back(record);
}

OpRecord* Shadow::find_view(StorageKey storage, const Geometry& geometry, OpSeq after) const {
  auto found = entries_.find(storage);
  if (found == entries_.end()) return nullptr;
  const std::vector<OpRecord*>& views = found->second.views;
  for (auto it = views.rbegin(); it != views.rend() && (*it)->seq > after; ++it) {
    if ((*it)->outputs.front().facts.geometry == geometry) return *it;
  }
  return nullptr;
}

OpRecord* Shadow::current_view(StorageKey storage, const Geometry& geometry) const {
  OpRecord* view = find_view(storage, geometry, 0);
  if (view == nullptr) return nullptr;
  bool newer = false;
  bool any = false;
  for_overlapping(entries_.find(storage)->second, geometry.begin_byte(), geometry.end_byte(), [&](auto it) {
    any = true;
    newer = it->second.writer->seq >= view->seq;
    return !newer;
  });
  return any && !newer ? view : nullptr;
}

StorageKey Shadow::find_by_address(const void* data, std::int64_t bytes, StorageKey self, std::int64_t* offset) const {
  const auto* wanted = static_cast<const char*>(data);
  for (const auto& [key, entry] : entries_) {
    if (key == self || !guards_.alive(entry.guard)) continue;
    const auto* base = static_cast<const char*>(guards_.data(entry.guard));
    if (base != nullptr && wanted >= base && wanted + bytes <= base + guards_.bytes(entry.guard)) {
      *offset = wanted - base;
      return key;
    }
  }
  return 0;
}

void Shadow::adopt(StorageKey storage, StorageKey other, std::int64_t offset, const Geometry& geometry) {
  auto source = entries_.find(other);
  auto target = entries_.find(storage);
  if (source == entries_.end() || target == entries_.end()) return;
  std::vector<Resident> taken;
  for_overlapping(source->second, geometry.begin_byte() + offset, geometry.end_byte() + offset, [&](auto it) {
    Resident copy = it->second;
    copy.delta += offset;
    copy.end -= offset;
    taken.push_back(std::move(copy));
  });
  for (Resident& resident : taken) {
    store_->retain(resident.writer);
    const std::int64_t begin = geometry_of(*resident.writer, resident.output).begin_byte() - resident.delta;
    add(&target->second, begin, std::move(resident));
  }
}

std::unordered_map<StorageKey, Shadow::Entry>::iterator Shadow::drop(
    std::unordered_map<StorageKey, Entry>::iterator entry) {
  filter_[filter_slot(entry->first)].fetch_sub(1, std::memory_order_relaxed);
  guards_.release(entry->second.guard);
  for (SizeClass& each : entry->second.classes) {
    for (auto& [begin, resident] : each.residents) store_->release(resident.writer);
  }
  for (OpRecord* view : entry->second.views) store_->release(view);
  return entries_.erase(entry);
}

void Shadow::sweep() {
  for (auto it = entries_.begin(); it != entries_.end();) {
    it = guards_.alive(it->second.guard) ? std::next(it) : drop(it);
  }
  sweep_at_ = std::max<std::size_t>(64, 2 * entries_.size());
}

void Shadow::clear() {
  for (auto it = entries_.begin(); it != entries_.end();) it = drop(it);
}

}  // namespace sherlorch
