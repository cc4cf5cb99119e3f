// Interned strings, source sites, modules and operators. Entries are never removed, so an id stays good for the life
// of the process; their number is bounded by the size of the program, not by how long it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "core/graph/operator_info.h"

namespace sherlorch {

// Strings by id; 0 is "". Thread-safe.
class StringPool {
 public:
  StringPool();
  std::uint32_t intern(std::string_view text);
  std::string get(std::uint32_t id) const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

struct Site {
  std::string file;
  std::string function;
  int line = 0;
};

// Source sites by id; 0 is the unknown site. Thread-safe.
class SiteTable {
 public:
  SiteTable();
  SiteId add(Site site);  // equal sites get the same id
  Site get(SiteId id) const;

 private:
  mutable std::mutex mutex_;
  std::deque<Site> sites_;
  std::unordered_map<std::string, SiteId> ids_;
};

struct NamedModule {
  std::string name;  // qualified: "encoder.layers.3.norm"
  std::string type;  // class name; may be empty
};

// Running modules by id, each known by the address of its object for as long as it lives. Thread-safe.
// Names are given from outside (by watch(), or when a module is first seen); the same module may have a name under
// several watches, the first one wins.
class ModuleTable {
 public:
  ModuleTable();
  // The id of the living module at this address; a new one if it is not known.
  ModuleId id_of(const void* module);
  // The module at this address is gone: the address may mean another one from now on.
  void forget(const void* module);
  // `type`: its class, for those who draw the tree.
  void set_name(ModuleId id, std::string name, std::string type = "");
  std::string name(ModuleId id) const;  // "" if it has none
  // The modules that have a name and are not gone, in the order in which they were last named.
  std::vector<NamedModule> living() const;
  // True until the module has a name or set_named() was called: the front is asked for a name once. Any thread, no
  // lock.
  bool needs_name(ModuleId id) const noexcept { return id < kFlags && !named_[id].load(std::memory_order_relaxed); }
  void set_named(ModuleId id) noexcept {
    if (id < kFlags) named_[id].store(true, std::memory_order_relaxed);
  }
  // Counts forget() calls; caches of (address -> id) are good only for the generation in which they were filled.
  std::uint32_t generation() const noexcept { return __atomic_load_n(&generation_, __ATOMIC_ACQUIRE); }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const void*, ModuleId> ids_;
  static constexpr std::size_t kFlags = 1 << 16;  // modules past these are never asked about again
  struct Entry {
    NamedModule module;
    std::uint64_t named_as = 0;  // how manieth call of set_name() this was
  };
  std::deque<Entry> entries_;
  std::uint64_t namings_ = 0;
  std::unique_ptr<std::atomic<bool>[]> named_;
  std::uint32_t generation_ = 0;
};

// Operators by id; 0 is the unknown operator. Thread-safe.
class OperatorTable {
 public:
  OperatorTable();
  OperatorId add(OperatorInfo info);
  // The reference stays good for the life of the table.
  const OperatorInfo& get(OperatorId id) const;

 private:
  mutable std::mutex mutex_;
  std::deque<OperatorInfo> operators_;
};

// All of them, as the recorder and the diagnosis share them.
struct Tables {
  StringPool strings;
  SiteTable sites;
  ModuleTable modules;
  OperatorTable operators;
};

}  // namespace sherlorch
