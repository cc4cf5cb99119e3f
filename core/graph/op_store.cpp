#include "core/graph/op_store.h"

#include <cstdlib>
#include <utility>
#include <vector>

namespace sherlorch {

namespace {

// An op that only carried bad values on, out of one tensor that one op wrote.
bool only_propagates(const OpRecord& record) noexcept {
  if (record.kind != OpKind::kOp) return false;
  std::size_t edges = 0;
  for (const InputRecord& input : record.inputs) edges += input.edges.size();
  if (edges != 1) return false;
  for (const OutputRecord& output : record.outputs) {
    if (!output.introduced.empty() || !output.deliberate.empty()) return false;
  }
  return true;
}

const ReadEdge& only_edge(const OpRecord& record) noexcept {
  for (const InputRecord& input : record.inputs) {
    if (!input.edges.empty()) return input.edges.front();
  }
  std::abort();  // only_propagates() was true
}

}  // namespace

OpStore::~OpStore() {
  while (oldest_ != nullptr) delete std::exchange(oldest_, oldest_->newer_);
}

OpRecord* OpStore::add(std::unique_ptr<OpRecord> record) {
  if (size_ >= cap_) fold_oldest();
  for (InputRecord& input : record->inputs) {
    for (ReadEdge& edge : input.edges) retain(edge.writer);
    if (input.via != nullptr) retain(input.via);
  }
  record->references_ = 1;
  record->older_ = newest_;
  (newest_ != nullptr ? newest_->newer_ : oldest_) = record.get();
  newest_ = record.get();
  ++size_;
  return record.release();
}

void OpStore::release(OpRecord* record) noexcept {
  // The chain of records to free is threaded through newer_, which a record taken off the list no longer needs: no
  // allocation, no recursion.
  OpRecord* dead = nullptr;
  auto drop = [&](OpRecord* held) {
    if (--held->references_ != 0) return;
    (held->older_ != nullptr ? held->older_->newer_ : oldest_) = held->newer_;
    (held->newer_ != nullptr ? held->newer_->older_ : newest_) = held->older_;
    held->newer_ = dead;
    dead = held;
    --size_;
  };
  drop(record);
  while (dead != nullptr) {
    OpRecord* next = std::exchange(dead, dead->newer_);
    for (InputRecord& input : next->inputs) {
      for (ReadEdge& edge : input.edges) drop(edge.writer);
      if (input.via != nullptr) drop(input.via);
    }
    delete next;
  }
}

// The history has reached its cap: among the older half, let an op read past the ops that only carried the value on.
// What introduced a value always stays.
void OpStore::fold_oldest() {
  std::size_t left = size_ / 2;
  std::vector<OpRecord*> to_release;
  for (OpRecord* record = oldest_; record != nullptr && left > 0; record = record->newer_, --left) {
    for (InputRecord& input : record->inputs) {
      for (ReadEdge& edge : input.edges) {
        while (only_propagates(*edge.writer)) {
          const ReadEdge& past = only_edge(*edge.writer);
          if (past.writer == edge.writer) break;
          OpRecord* skipped = edge.writer;
          edge.writer = past.writer;
          edge.output = past.output;
          edge.folded += past.folded + 1;
          retain(edge.writer);
          to_release.push_back(skipped);
          ++folded_;
        }
      }
    }
  }
  for (OpRecord* record : to_release) release(record);
  // A history that cannot be folded (every op introduces something) may outgrow the cap rather than lose a culprit.
  if (size_ >= cap_) cap_ += cap_ / 2;
}

}  // namespace sherlorch
