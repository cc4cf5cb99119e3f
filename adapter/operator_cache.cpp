#include "adapter/operator_cache.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <deque>
#include <mutex>
#include <unordered_map>

namespace sherlorch {

namespace {

bool is_tensor_type(const c10::TypePtr& type, bool* list) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return true;
    case c10::TypeKind::OptionalType:
      return is_tensor_type(type->castRaw<c10::OptionalType>()->getElementType(), list);
    case c10::TypeKind::ListType:
      *list = true;
      return is_tensor_type(type->castRaw<c10::ListType>()->getElementType(), list);
    default:
      return false;
  }
}

// The annotation of a list stands on the list or on its elements.
bool is_write(const c10::AliasInfo* alias) {
  if (alias == nullptr) return false;
  if (alias->isWrite()) return true;
  for (const c10::AliasInfo& contained : alias->containedTypes()) {
    if (is_write(&contained)) return true;
  }
  return false;
}

void describe(const c10::FunctionSchema& schema, Tables* tables, CachedOperator* into) {
  CachedOperator& cached = *into;
  cached.text = schema.name();
  cached.overload = schema.overload_name();
  cached.is_aten = cached.text.starts_with("aten::");
  OperatorInfo info;
  info.name = schema.name();
  info.overload = schema.overload_name();
  for (const c10::Argument& argument : schema.arguments()) {
    ArgumentInfo arg;
    arg.name = argument.name();
    arg.is_tensor = is_tensor_type(argument.type(), &arg.is_list);
    arg.is_written = arg.is_tensor && is_write(argument.alias_info());
    info.arguments.push_back(std::move(arg));
  }
  for (const c10::Argument& result : schema.returns()) {
    const c10::AliasInfo* alias = result.alias_info();
    info.return_aliases.push_back(alias != nullptr);
    if (is_write(alias) && cached.returns < 64) cached.written_returns |= std::uint64_t{1} << cached.returns;
    ++cached.returns;
  }
  cached.traits = operator_traits(info);
  for (std::size_t i = 0; i < info.arguments.size() && i < 255; ++i) {
    const bool hidden = i < 32 && (cached.traits.hidden_writes >> i & 1) != 0;
    if (hidden) info.arguments[i].is_written = true;
    if (info.arguments[i].is_written && !hidden) cached.written_args.push_back(static_cast<std::uint8_t>(i));
  }
  cached.id = tables->operators.add(std::move(info));
  const std::size_t colon = cached.text.rfind(':');
  cached.short_name = cached.text.c_str() + (colon == std::string::npos ? 0 : colon + 1);
}

}  // namespace

const CachedOperator* OperatorCache::find_slow(const at::RecordFunction& record, const char* name) {
  // Asking for the schema copies it, so it is asked for once an operator and process.
  static std::mutex mutex;
  static auto* known = new std::unordered_map<const char*, const CachedOperator*>();
  static auto* storage = new std::deque<CachedOperator>();
  {
    std::lock_guard lock(mutex);
    auto found = known->find(name);
    if (found != known->end() && found->second->text == name && found->second->overload == record.overload_name()) {
      known_.insert(name) = found->second;
      return found->second;
    }
  }
  const std::optional<c10::FunctionSchema> schema = record.operator_schema();
  if (!schema.has_value()) return nullptr;
  std::lock_guard lock(mutex);
  CachedOperator& kept = storage->emplace_back();
  describe(*schema, tables_, &kept);
  (*known)[name] = &kept;
  known_.insert(name) = &kept;
  return &kept;
}

}  // namespace sherlorch
