#include "core/report/chrome_trace.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>

#include "core/report/json_writer.h"

namespace sherlorch {
namespace {

class ChromeTrace {
 public:
  std::string write(std::span<const TimelineOp> ops) {
    out_ = "{\"traceEvents\": [";
    metadata("process_name", 0, "sherlorch flight recorder");
    thread("");  // the main thread first, whoever ran first
    for (const TimelineOp& op : ops) add(op);
    out_ += "\n],\n\"displayTimeUnit\": \"ms\",\n\"otherData\": ";
    JsonWriter json;
    json.begin_object();
    const auto text = [&](std::string_view key, std::string_view value) {
      json.key(key);
      json.string(value);
    };
    text("schema", "sherlorch-trace");
    text("version", "1");
    text("clock",
         "none: the recorder keeps no time; 1 us is one ticket, so the axis shows the order of the ops, not how "
         "long they took");
    json.end_object();
    return std::move(out_) + json.take() + "}\n";
  }

 private:
  void add(const TimelineOp& op) {
    const double start = std::isfinite(op.start_us) ? op.start_us : static_cast<double>(op.seq);
    const std::int64_t tid = thread(op.thread_name);
    if (op.nonfinite && !marked_) {
      marked_ = true;
      JsonWriter mark = event("first non-finite op: " + op.op_name, "i", tid, start);
      mark.key("s");
      mark.string("g");  // across all tracks
      put(mark);
    }
    slice(op, tid, start);
    if (std::isfinite(op.largest)) {
      JsonWriter counter = event("largest magnitude", "C", 0, start);
      counter.key("args");
      counter.begin_object();
      counter.key("largest");
      counter.number(op.largest);
      counter.end_object();
      put(counter);
    }
  }

  void slice(const TimelineOp& op, std::int64_t tid, double start) {
    JsonWriter json = event(op.op_name, "X", tid, start);
    json.key("dur");
    json.integer(1);
    json.key("cat");
    json.string(std::string(phase_name(op.phase)) + (op.nonfinite ? ",nonfinite" : ""));
    if (op.nonfinite) {
      json.key("cname");
      json.string("terrible");  // chrome://tracing's red
    }
    json.key("args");
    json.begin_object();
    json.key("seq");
    json.unsigned_integer(op.seq);
    const auto text = [&](std::string_view key, const std::string& value) {
      if (value.empty()) return;
      json.key(key);
      json.string(value);
    };
    text("location", op.location);
    text("module", op.module_path);
    json.key("largest");
    json.number(op.largest);
    json.key("nonfinite");
    json.boolean(op.nonfinite);
    json.end_object();
    put(json);
  }

  // The number of the thread's track; names it at first sight.
  std::int64_t thread(const std::string& name) {
    const auto [found, is_new] = threads_.try_emplace(name, static_cast<std::int64_t>(threads_.size()) + 1);
    if (is_new) metadata("thread_name", found->second, name.empty() ? "main thread" : name);
    return found->second;
  }

  void metadata(std::string_view what, std::int64_t tid, std::string_view name) {
    JsonWriter json = event(what, "M", tid, 0);
    json.key("args");
    json.begin_object();
    json.key("name");
    json.string(name);
    json.end_object();
    put(json);
  }

  // An event that still lacks its own members and its end.
  static JsonWriter event(std::string_view name, std::string_view type, std::int64_t tid, double start) {
    JsonWriter json;
    json.begin_object();
    json.key("name");
    json.string(name);
    json.key("ph");
    json.string(type);
    json.key("pid");
    json.integer(1);
    json.key("tid");
    json.integer(tid);
    json.key("ts");
    json.number(start);
    return json;
  }

  void put(JsonWriter& json) {
    json.end_object();
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    out_ += json.take();
  }

  std::string out_;
  bool first_ = true;
  bool marked_ = false;
  std::map<std::string, std::int64_t> threads_;
};

}  // namespace

std::string to_chrome_trace(std::span<const TimelineOp> ops) { return ChromeTrace().write(ops); }

}  // namespace sherlorch
