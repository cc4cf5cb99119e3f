#include "core/graph/shadow.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "core/base/shared_bytes.h"

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

}  // namespace

template <typename EntryType, typename F>
void Shadow::for_overlapping(EntryType& entry, std::int64_t begin, std::int64_t end, F&& f) {
  for (auto& layer : entry.layers) {
    auto it = layer.residents.lower_bound(begin - (std::int64_t{1} << layer.log2_length));
    for (; it != layer.residents.end() && it->first < end; ++it) {
      if (it->second.end <= begin) continue;
      if constexpr (std::is_void_v<decltype(f(layer, it))>) {
        f(layer, it);
      } else if (!f(layer, it)) {
        return;
      }
    }
  }
}

void Shadow::Entry::add(std::int64_t begin, Resident resident) {
  const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(1, resident.end - begin));
  const int log2_length = std::bit_width(length - 1);
  auto layer = std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return l.log2_length == log2_length; });
  if (layer == layers.end()) layer = layers.insert(layers.end(), Layer{log2_length, {}});
  layer->residents.emplace(begin, std::move(resident));
}

void Shadow::open(StorageKey storage, void* guard, OpSeq seq) {
  auto [entry, added] = entries_.try_emplace(storage);
  if (!added) {
    guards_.release(guard);
    return;
  }
  entry->second.guard = guard;
  entry->second.opened = seq;
  filter_[filter_slot(storage)].fetch_add(1, std::memory_order_relaxed);
}

// Takes what `written` covers out of the residents of this entry.
void Shadow::cover(Entry* entry, const Geometry& written) {
  bool emptied = false;
  const bool rows = written.contiguous();
  for_overlapping(*entry, written.begin_byte(), written.end_byte(), [&](Layer&, auto it) {
    Resident& resident = it->second;
    const Geometry mine = shifted(geometry_of(*resident.writer, resident.output), -resident.delta);
    if (rows && mine.contiguous()) {
      const Run covered = run_sharing_bytes(written, {0, written.numel()}, mine);
      resident.live.remove(covered.begin, covered.end);
    } else {
      const ElementSet all = ElementSet::range(0, written.numel());
      const ElementSet covered = sharing_bytes(written, all, mine, resident.live, true);
      if (!covered.empty()) resident.live = set_difference(resident.live, covered);
    }
    emptied |= resident.live.empty();
  });
  if (!emptied) return;
  std::vector<std::pair<Layer*, std::multimap<std::int64_t, Resident>::iterator>> gone;
  for_overlapping(*entry, written.begin_byte(), written.end_byte(), [&](Layer& layer, auto it) {
    if (it->second.live.empty()) gone.emplace_back(&layer, it);
  });
  for (auto& [layer, it] : gone) {
    OpRecord* writer = it->second.writer;
    layer->residents.erase(it);
    store_->release(writer);
  }
  std::erase_if(entry->layers, [](const Layer& layer) { return layer.residents.empty(); });
}

void Shadow::erase(StorageKey storage, const Geometry& written) {
  auto found = entries_.find(storage);
  if (found == entries_.end() || written.numel() == 0) return;
  cover(&found->second, written);
  if (found->second.layers.empty()) drop(found);
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
  entry.add(written.begin_byte(), std::move(resident));
}

ReadEdges Shadow::attribute(StorageKey storage, const Geometry& geometry, const ElementSet& bad,
                            ElementSet* unexplained) const {
  ReadEdges edges;
  *unexplained = bad;
  auto found = entries_.find(storage);
  if (found == entries_.end() || bad.empty()) return edges;
  for_overlapping(found->second, geometry.begin_byte(), geometry.end_byte(), [&](auto&, auto it) {
    if (unexplained->empty()) return;
    const Resident& resident = it->second;
    const Geometry mine = shifted(geometry_of(*resident.writer, resident.output), -resident.delta);
    ElementSet explained = sharing_bytes(mine, resident.live, geometry, *unexplained);
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
  const ElementSet all = ElementSet::range(0, geometry.numel());
  for_overlapping(found->second, geometry.begin_byte(), geometry.end_byte(), [&](auto&, auto it) {
    const Resident& resident = it->second;
    const Geometry mine = shifted(geometry_of(*resident.writer, resident.output), -resident.delta);
    const BadElements& bad = resident.writer->outputs[resident.output].bad;
    const auto add = [&](const ElementSet& kind, ElementSet* into) {
      *into = set_union(*into, sharing_bytes(mine, set_intersection(resident.live, kind), geometry, all));
    };
    add(bad.nan, &expected.nan);
    add(bad.pos_inf, &expected.pos_inf);
    add(bad.neg_inf, &expected.neg_inf);
  });
  return expected;
}

bool Shadow::overlaps(StorageKey storage, std::int64_t begin, std::int64_t end) const {
  auto found = entries_.find(storage);
  if (found == entries_.end()) return false;
  bool any = false;
  for_overlapping(found->second, begin, end, [&](auto&, auto) {
    any = true;
    return false;
  });
  return any;
}

OpRecord* Shadow::newest_writer(StorageKey storage, const Geometry& geometry) const {
  auto found = entries_.find(storage);
  if (found == entries_.end()) return nullptr;
  OpRecord* newest = nullptr;
  for_overlapping(found->second, geometry.begin_byte(), geometry.end_byte(), [&](auto&, auto it) {
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
  for_overlapping(entries_.find(storage)->second, geometry.begin_byte(), geometry.end_byte(), [&](auto&, auto it) {
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
  for_overlapping(source->second, geometry.begin_byte() + offset, geometry.end_byte() + offset, [&](auto&, auto it) {
    Resident copy = it->second;
    copy.delta += offset;
    copy.end -= offset;
    taken.push_back(std::move(copy));
  });
  for (Resident& resident : taken) {
    store_->retain(resident.writer);
    const std::int64_t begin = geometry_of(*resident.writer, resident.output).begin_byte() - resident.delta;
    target->second.add(begin, std::move(resident));
  }
}

std::unordered_map<StorageKey, Shadow::Entry>::iterator Shadow::drop(
    std::unordered_map<StorageKey, Entry>::iterator entry) {
  filter_[filter_slot(entry->first)].fetch_sub(1, std::memory_order_relaxed);
  guards_.release(entry->second.guard);
  for (Layer& layer : entry->second.layers) {
    for (auto& [begin, resident] : layer.residents) store_->release(resident.writer);
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
