#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/report/json_writer.h"
#include "core/report/text_util.h"
#include "sherlorch/report.h"

namespace sherlorch {
namespace {

// One section of the document ("entity", "used", ...): an object of objects by name.
class Section {
 public:
  explicit Section(std::string_view name) {
    json_.begin_object();
    json_.key(name);
    json_.begin_object();
  }

  void begin(const std::string& id) {
    json_.key(id);
    json_.begin_object();
  }
  void text(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    json_.key(key);
    json_.string(value);
  }
  void number(std::string_view key, std::uint64_t value) {
    json_.key(key);
    json_.unsigned_integer(value);
  }
  void real(std::string_view key, double value) {
    json_.key(key);
    json_.number(value);
  }
  void end() { json_.end_object(); }

  // The section without the braces of the document around it.
  std::string take() {
    json_.end_object();
    json_.end_object();
    const std::string whole = json_.take();
    return whole.substr(1, whole.size() - 2);
  }

 private:
  JsonWriter json_;
};

class ProvDocument {
 public:
  std::string write(const Diagnosis& diagnosis) {
    for (const Culprit& culprit : diagnosis.culprits) culprits_.insert(culprit.step.seq);
    for (const Culprit& culprit : diagnosis.culprits) {
      for (std::size_t i = 0; i < culprit.path.size(); ++i) {
        const Step& step = culprit.path[i];
        op(step);
        if (i > 0) link(culprit.path[i - 1], step);
      }
    }
    op(diagnosis.target);
    for (const Culprit& culprit : diagnosis.culprits) inputs(culprit);
    return "{\n\"prefix\": {\"sherlorch\": \"urn:sherlorch:\"},\n" + entity_.take() + ",\n" + activity_.take() + ",\n" +
           generated_.take() + ",\n" + used_.take() + ",\n" + derived_.take() + "\n}\n";
  }

 private:
  static std::string op_id(const Step& step) { return "sherlorch:op" + std::to_string(step.seq); }
  static std::string output_id(const Step& step) { return "sherlorch:tensor" + std::to_string(step.seq); }

  void counts(const FinitenessCounts& counts) {
    entity_.number("sherlorch:elements", static_cast<std::uint64_t>(counts.numel));
    entity_.number("sherlorch:nan", static_cast<std::uint64_t>(counts.nan));
    entity_.number("sherlorch:pos_inf", static_cast<std::uint64_t>(counts.pos_inf));
    entity_.number("sherlorch:neg_inf", static_cast<std::uint64_t>(counts.neg_inf));
  }

  // The op, its output, and that the one made the other.
  void op(const Step& step) {
    if (!ops_.insert(step.seq).second) return;
    activity_.begin(op_id(step));
    activity_.text("prov:label", step.op_name);
    activity_.text("prov:type", "sherlorch:Op");
    activity_.text("sherlorch:operator", step.operator_name);
    activity_.text("sherlorch:location", step.location.text());
    activity_.text("sherlorch:module", step.module_path);
    activity_.text("sherlorch:phase", phase_name(step.phase));
    activity_.text("sherlorch:autograd_node", step.autograd_node);
    activity_.text("sherlorch:thread", step.thread_name);
    if (culprits_.contains(step.seq)) activity_.text("sherlorch:role", "culprit");
    activity_.end();
    entity_.begin(output_id(step));
    entity_.text("prov:label", "output of " + step.op_name);
    entity_.text("prov:type", "sherlorch:Tensor");
    entity_.text("sherlorch:shape", shape_text(step.shape));
    entity_.text("sherlorch:dtype", step.dtype);
    counts(step.counts);
    entity_.end();
    relate(generated_, "prov:entity", output_id(step), "prov:activity", op_id(step));
  }

  void link(const Step& before, const Step& step) {
    if (!links_.insert({before.seq, step.seq}).second) return;
    if (before.folded == 0) {
      relate(used_, "prov:activity", op_id(step), "prov:entity", output_id(before));
    } else {  // by ops that are not in the report
      relate(derived_, "prov:generatedEntity", output_id(step), "prov:usedEntity", output_id(before));
    }
  }

  // What a culprit read, and where its bad value came in.
  void inputs(const Culprit& culprit) {
    op(culprit.step);
    std::size_t number = 0;
    bool origin_read = culprit.origin == Origin::kOp;
    for (const Operand& operand : culprit.operands) {
      if (operand.is_scalar || operand.name == "output") continue;
      const std::string id = "sherlorch:input" + std::to_string(culprit.step.seq) + "." + std::to_string(number++);
      entity_.begin(id);
      entity_.text("prov:label", operand.label.empty() ? operand.name : operand.label);
      entity_.text("prov:type", "sherlorch:Tensor");
      entity_.text("sherlorch:argument", operand.name);
      entity_.text("sherlorch:shape", shape_text(operand.shape));
      entity_.text("sherlorch:dtype", operand.dtype);
      if (!operand.overwritten) counts(operand.counts);
      if (operand.has_range) {
        entity_.real("sherlorch:min", operand.min);
        entity_.real("sherlorch:max", operand.max);
      }
      if (!origin_read && operand.label == culprit.origin_label) {
        entity_.text("sherlorch:origin", origin_name(culprit.origin));
        origin_read = true;
      }
      entity_.end();
      relate(used_, "prov:activity", op_id(culprit.step), "prov:entity", id);
    }
    if (origin_read) return;
    const std::string id = "sherlorch:origin" + std::to_string(culprit.step.seq);
    entity_.begin(id);
    entity_.text("prov:label", culprit.origin_label);
    entity_.text("sherlorch:origin", origin_name(culprit.origin));
    entity_.end();
    relate(used_, "prov:activity", op_id(culprit.step), "prov:entity", id);
  }

  void relate(Section& section, std::string_view from, const std::string& a, std::string_view to,
              const std::string& b) {
    section.begin("_:r" + std::to_string(++relations_));
    section.text(from, a);
    section.text(to, b);
    section.end();
  }

  Section entity_{"entity"}, activity_{"activity"}, generated_{"wasGeneratedBy"}, used_{"used"},
      derived_{"wasDerivedFrom"};
  std::set<OpSeq> ops_, culprits_;
  std::set<std::pair<OpSeq, OpSeq>> links_;
  std::uint64_t relations_ = 0;
};

}  // namespace

std::string to_prov_json(const Diagnosis& diagnosis) { return ProvDocument().write(diagnosis); }

}  // namespace sherlorch
