// From an operator's name to its map.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/operators/relation_call.h"

namespace sherlorch {
namespace {

using maps::Family;
using maps::Handler;

struct Found {
  Handler handler = nullptr;
  std::string_view values;  // tensor argument whose integer values it needs
};

using Table = std::unordered_map<std::string_view, Found>;

const Table& table() {
  static const Table entries = [] {
    Table result;
    for (auto families :
         {maps::pointwise_families(), maps::shape_families(), maps::join_families(), maps::pattern_families(),
          maps::index_families(), maps::scatter_families(), maps::reduce_families(), maps::norm_families(),
          maps::linear_families(), maps::window_families(), maps::loss_families(), maps::optimizer_families()}) {
      for (const Family& family : families) {
        for (std::string_view rest = family.names; !rest.empty();) {
          const std::size_t end = std::min(rest.find(' '), rest.size());
          if (end > 0) result.emplace(rest.substr(0, end), Found{family.handler, family.values});
          rest.remove_prefix(std::min(end + 1, rest.size()));
        }
      }
    }
    return result;
  }();
  return entries;
}

// "add_" is in the table as "add".
Found find_map(const OperatorInfo& op) noexcept {
  if (!op.name.starts_with("aten::")) return {};
  const std::string_view name = op.short_name();
  const Table& entries = table();
  auto entry = entries.find(name);
  if (entry == entries.end() && name.ends_with('_')) entry = entries.find(name.substr(0, name.size() - 1));
  return entry == entries.end() ? Found{} : entry->second;
}

// out= arguments are written and never read. Operators that do read what they write end in '_'; these are the others.
bool reads_written_arguments(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kReaders{
      "_native_batch_norm_legit",        "_batch_norm_with_update",         "native_batch_norm", "batch_norm",
      "_fused_moving_avg_obs_fq_helper", "fused_moving_avg_obs_fake_quant", "embedding_renorm"};
  return name.ends_with('_') || std::find(kReaders.begin(), kReaders.end(), name) != kReaders.end();
}

}  // namespace

MappedOperator::MappedOperator(const OperatorInfo& op)
    : op_(&op), handler_(find_map(op).handler), rewrites_(op.name.ends_with('_')) {}

// The commonest call by far, without looking at its arguments.
bool MappedOperator::surely_identity(const OpRecord& record, std::size_t output, std::size_t input) const noexcept {
  if (handler_ != &maps::pointwise || record.inputs[input].scalar) return false;
  const TensorFacts& in = record.inputs[input].facts;
  return in.geometry.sizes == record.outputs[output].facts.geometry.sizes &&
         (rewrites_ || in.arg >= op_->arguments.size() || !op_->arguments[in.arg].is_written);
}

Relation MappedOperator::relate(const OpRecord& record, std::size_t output, std::size_t input, bool* mapped) const {
  if (mapped != nullptr) *mapped = true;
  if (output >= record.outputs.size() || input >= record.inputs.size()) return Relation::nothing();
  if (record.inputs[input].scalar) return Relation::everything();
  if (surely_identity(record, output, input)) return Relation::identity();
  const OperatorInfo& op = *op_;
  const TensorFacts& in = record.inputs[input].facts;
  const maps::Call call(op, record, output, input);
  if (in.arg < op.arguments.size() && op.arguments[in.arg].is_written && !reads_written_arguments(call.name)) {
    return Relation::nothing();
  }
  Relation relation = handler_ != nullptr ? handler_(call) : call.is_view() ? maps::by_memory(call) : call.unmapped();
  // A call of a known view that its map does not understand may still be read off the memory.
  if (!call.mapped && handler_ != nullptr && call.is_view()) {
    call.mapped = true;
    relation = maps::by_memory(call);
  }
  if (mapped != nullptr) *mapped = call.mapped;
  return relation;
}

Relation relate(const OperatorInfo& op, const OpRecord& record, std::size_t output, std::size_t input, bool* mapped) {
  return MappedOperator(op).relate(record, output, input, mapped);
}

bool needs_integer_values(const OperatorInfo& op, std::size_t arg) noexcept {
  if (arg >= op.arguments.size() || !op.arguments[arg].is_tensor) return false;
  const Found found = find_map(op);
  return found.handler != nullptr && !found.values.empty() && op.arguments[arg].name == found.values;
}

std::vector<std::string> mapped_operators() {
  std::vector<std::string> names;
  for (const auto& [name, found] : table()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sherlorch
