// Builds the Diagnosis of a tensor: who is to blame, on which elements, by which path, and why.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "sherlorch/diagnosis.h"
#include "sherlorch/errors.h"

namespace sherlorch {

// The tensor asked about, looked at by the adapter just now.
struct Target {
  TensorFacts facts;
  BadElements bad;       // narrowed to one element where the caller asked for one
  std::uint8_t tag = 0;  // address_tag() of its memory
  std::int64_t numel = 0;
  std::string dtype;   // "torch.float32"
  std::string device;  // "cpu"
};

// A parameter, buffer or gradient that the front knows by name.
struct StorageLabel {
  std::string name;  // "net.4.running_var", "net.0.weight.grad"; "" if unknown
  bool buffer = false;
  bool gradient = false;   // named for this question: what it was before is not known
  std::int64_t begin = 0;  // its bytes in the storage: several may share one
  std::int64_t end = 0;
  const void* tensor = nullptr;  // which tensor it is: several may share the bytes
  int model = -1;                // whose it is, for the front
  OpSeq since = 0;               // it has had this memory and this name from this op on
  // "buffer net.4.running_var"; "" if unknown
  std::string text() const {
    return name.empty() ? "" : (buffer ? "buffer " : gradient ? "gradient " : "parameter ") + name;
  }
};

// Whose question it is: the window on the recording, and names that the core cannot know.
struct View {
  std::function<bool(OpSeq)> visible;        // the op lies in the trace that asks
  OpSeq begin = 1;                           // none before this one does
  std::function<bool(OpSeq)> names_modules;  // ops of which module paths are told
  // What is named in the storage, whole or in part.
  std::function<std::vector<StorageLabel>(StorageKey)> labels;
  std::function<std::string(std::uint8_t)> dtype_text;  // c10::ScalarType -> "torch.float32"
  std::function<std::string(ThreadId)> thread_text;     // "" for the main thread
  bool sites = true;                                    // file:line wanted
  bool scans_views = false;                             // views were scanned, too
  bool sampled = false;                                 // very large tensors were scanned in part
  std::uint64_t total_ops = 0;
  std::vector<BlindSpot> blind_spots;
};

// True if a tensor of this geometry may have been scanned in part only (trace(sample=...)).
bool scanned_in_part(const View& view, const Geometry& geometry);

// Elements that were bad in the output of each step of a diagnosis, for heat maps: by the step's ticket.
using StepElements = std::map<OpSeq, ElementSet>;

// Throws UntrackedTensorError. Takes the graph's lock. `elements` may be null.
Diagnosis diagnose(Graph& graph, const Target& target, const View& view, StepElements* elements);

// Ops of the trace that made something non-finite, or first held it, which does not reach the target: bad values that
// were dropped, overwritten, absorbed, or are in other branches. As far as something alive still descends from them;
// oldest first, the newest `limit` of them. Takes the graph's lock.
std::vector<Step> bystanders(Graph& graph, const Target& target, const View& view, std::size_t limit);

// The last op that wrote this tensor, or made this view of it. False if the trace never saw one.
bool find_node(Graph& graph, const Target& target, const View& view, Step* step);

}  // namespace sherlorch
