// The tracer for programs that link libtorch: records every op, and tells which one first made a NaN or an infinity.
//
//   #include <sherlorch/report.h>
//   #include <sherlorch/tracker.h>
//
//   sherlorch::Tracker tracker;  // records from here on
//   tracker.watch(*net, "net");
//   torch::Tensor loss = torch::nll_loss(net->forward(x), y);
//   loss.backward();
//   if (tracker.has_issue(loss)) std::cout << sherlorch::to_text(tracker.diagnose(loss)) << '\n';
//
// docs/cpp.md has the whole of it, with CMake. A Diagnosis is plain data (sherlorch/diagnosis.h); sherlorch/report.h
// prints it. This is the one header that needs torch's.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sherlorch/diagnosis.h"
#include "sherlorch/errors.h"
#include "sherlorch/export.h"

namespace sherlorch {

struct TrackerOptions {
  bool start = true;  // record from the constructor on; false: from start() on
  // Of ops that Python calls in this process, and only where the Python package sherlorch is loaded:
  bool locations = true;     // file and line
  bool module_paths = true;  // the running nn.Module
  // Less than 1: of tensors of 16 MiB or more scan only this share of what an op writes, in blocks of 4 KiB at even
  // distances, the same ones each time. A bad value in the rest shows at the first op that makes a bad value of it;
  // that one's origin then names the op before as a suspect, and the report counts what was looked at in part.
  double sample = 1.0;
  // Copy what an in-place op is about to overwrite, so that its values can be among the witnesses. Costs a copy of the
  // operand an in-place op (an optimizer's step: of all parameters and moments), for as long as the op runs.
  bool keep_operands = false;
  // Scan the outputs of ops that write nothing (views), too. The diagnoses are the same.
  bool scan_views = false;
  // Answer about tensors of these types only: others count as finite. Empty: every floating and complex type.
  std::vector<c10::ScalarType> dtypes;
};

// A parameter or buffer and what reports are to call it.
struct NamedTensor {
  at::TensorBase tensor;
  std::string name;     // "net.fc1.weight"
  bool buffer = false;  // "buffer net.bn.running_var" instead of "parameter ..."
};

// A view of the recording: of all ops of the process that run while it records, on every thread, forward, backward and
// in optimizers. Any number of trackers may record at once; the ops are recorded once.
//
// It never changes a result, holds no tensor alive (counts of references and versions stay as they are), and never
// throws into the program's ops: an op that it could not see is counted in Diagnosis::blind_spots.
//
// Threads: all functions may be called on any thread at any time, except that moving and destroying want the tracker
// for themselves. Ops of other threads go on meanwhile.
//
// Cost: about a microsecond an op, and one scan of what the op wrote, at memory speed. Memory: at most 26 MiB for the
// last ops, however long the program runs, and what is kept of non-finite values until the last tracker goes.
//
// Lifetime: the recording stops when the tracker is destroyed. What it gave out stays valid.
class SHERLORCH_API Tracker {
 public:
  explicit Tracker(const TrackerOptions& options = {});
  ~Tracker();
  // A tracker that was moved from may be destroyed or assigned to, and nothing else.
  Tracker(Tracker&& other) noexcept;
  Tracker& operator=(Tracker&& other) noexcept;
  Tracker(const Tracker&) = delete;
  Tracker& operator=(const Tracker&) = delete;

  // Starts recording, or counts one more start: as many calls of stop() end it. What was recorded before stays. A
  // stop() too many does nothing.
  void start();
  void stop();

  // Pauses the recording whatever the count of starts is, and goes on with it: for warm-up steps. Not counted.
  void disable();
  void enable();

  // Forgets what was recorded up to now; a recording goes on, names stay. Not needed to bound memory.
  void reset();

  // Started and not disabled.
  bool recording() const;

  // How many ops were recorded since the tracker was made or reset, as far as it was recording.
  std::uint64_t op_count() const;

  // Gives a parameter or buffer the name by which reports call it where it held a bad value before any op touched it:
  // "parameter net.fc1.weight". The last name counts. A name belongs to the tensor's memory: it holds for views of it,
  // and is to be given again where the memory is replaced (Module::to, set_data). Does not keep the tensor alive; a few
  // bytes stay until the tracker goes. Tensors without memory of their own (undefined, meta) are passed over.
  void name(const at::TensorBase& tensor, std::string name, bool buffer = false);
  void name(const std::vector<NamedTensor>& tensors);

  // Names all parameters and buffers of a torch::nn::Module, "<name>.fc1.weight". Takes a module, a holder of one
  // (TORCH_MODULE, torch::nn::Sequential) or a pointer to one: whatever has named_parameters() and named_buffers(),
  // itself or behind `*`. The model is not held and not changed.
  template <typename Module>
  void watch(const Module& module, const std::string& name = "model") {
    if constexpr (requires { module.named_parameters(); }) {
      std::vector<NamedTensor> tensors;
      for (const auto& item : module.named_parameters()) {
        tensors.push_back({item.value(), name + "." + item.key(), false});
      }
      for (const auto& item : module.named_buffers()) {
        tensors.push_back({item.value(), name + "." + item.key(), true});
      }
      this->name(tensors);
    } else {
      watch(*module, name);
    }
  }

  // True if the tensor holds a NaN or an infinity now, whether it was recorded or not. False where it has no memory
  // that can be read (undefined, meta, sparse without values, another device than the CPU).
  // Cost: one scan, at memory speed.
  bool has_issue(const at::TensorBase& tensor) const;

  // Why the tensor is non-finite: the ops that first made it so, with cause, witness and path. Takes results, views of
  // them, gradients, parameters: any tensor whose memory was written or read while this tracker recorded, also after it
  // has stopped. `ok()` of the answer if nobody is to blame.
  // Throws UntrackedTensorError if it saw no such tensor, or the tensor cannot be read.
  // Cost: milliseconds, and a scan of the tensor. Ops on non-finite values wait meanwhile, other ops don't.
  Diagnosis diagnose(const at::TensorBase& tensor) const;

  // Why this one element is non-finite: one number a dimension, negative ones counted from the end. {} asks about the
  // element of a 0-dim tensor. Throws IndexError, too, if the index is not in the tensor.
  Diagnosis diagnose(const at::TensorBase& tensor, c10::IntArrayRef index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sherlorch
