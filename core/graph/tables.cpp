#include "core/graph/tables.h"

#include <algorithm>
#include <utility>

namespace sherlorch {

StringPool::StringPool() {
  strings_.emplace_back();
  ids_.emplace(strings_.front(), 0);
}

std::uint32_t StringPool::intern(std::string_view text) {
  std::lock_guard lock(mutex_);
  if (auto found = ids_.find(text); found != ids_.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(strings_.size());
  strings_.emplace_back(text);
  ids_.emplace(strings_.back(), id);
  return id;
}

std::string StringPool::get(std::uint32_t id) const {
  std::lock_guard lock(mutex_);
  return id < strings_.size() ? strings_[id] : std::string();
}

SiteTable::SiteTable() { sites_.emplace_back(); }

SiteId SiteTable::add(Site site) {
  std::string key = site.file + '\0' + site.function + '\0' + std::to_string(site.line);
  std::lock_guard lock(mutex_);
  auto [entry, added] = ids_.try_emplace(std::move(key), static_cast<SiteId>(sites_.size()));
  if (added) sites_.push_back(std::move(site));
  return entry->second;
}

Site SiteTable::get(SiteId id) const {
  std::lock_guard lock(mutex_);
  return id < sites_.size() ? sites_[id] : Site();
}

ModuleTable::ModuleTable() : named_(std::make_unique<std::atomic<bool>[]>(kFlags)) { entries_.emplace_back(); }

ModuleId ModuleTable::id_of(const void* module) {
  std::lock_guard lock(mutex_);
  auto [entry, added] = ids_.try_emplace(module, static_cast<ModuleId>(entries_.size()));
  if (added) entries_.emplace_back();
  return entry->second;
}

void ModuleTable::forget(const void* module) {
  std::lock_guard lock(mutex_);
  if (ids_.erase(module) != 0) __atomic_add_fetch(&generation_, 1, __ATOMIC_RELEASE);
}

void ModuleTable::set_name(ModuleId id, std::string name, std::string type) {
  std::lock_guard lock(mutex_);
  if (id < entries_.size()) entries_[id] = {{std::move(name), std::move(type)}, ++namings_};
  set_named(id);
}

std::string ModuleTable::name(ModuleId id) const {
  std::lock_guard lock(mutex_);
  return id < entries_.size() ? entries_[id].module.name : std::string();
}

std::vector<NamedModule> ModuleTable::living() const {
  std::lock_guard lock(mutex_);
  std::vector<const Entry*> found;
  for (const auto& [address, id] : ids_) {
    if (!entries_[id].module.name.empty()) found.push_back(&entries_[id]);
  }
  std::sort(found.begin(), found.end(), [](const Entry* a, const Entry* b) { return a->named_as < b->named_as; });
  std::vector<NamedModule> modules;
  modules.reserve(found.size());
  for (const Entry* entry : found) modules.push_back(entry->module);
  return modules;
}

OperatorTable::OperatorTable() {
  operators_.emplace_back();
  operators_.front().name = "unknown";
}

OperatorId OperatorTable::add(OperatorInfo info) {
  std::lock_guard lock(mutex_);
  operators_.push_back(std::move(info));
  return static_cast<OperatorId>(operators_.size() - 1);
}

const OperatorInfo& OperatorTable::get(OperatorId id) const {
  std::lock_guard lock(mutex_);
  return operators_[id < operators_.size() ? id : 0];
}

}  // namespace sherlorch
