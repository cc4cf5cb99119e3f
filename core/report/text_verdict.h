// The sentences that say who did it. Shared by the text report and, through verdict(), by every other one.
#pragma once

#include <string>

#include "core/report/text_util.h"
#include "sherlorch/diagnosis.h"

namespace sherlorch {

// "log made -Inf at model.py:12 in model.layer1; layer_norm at model.py:40 turned it into NaN"
std::string culprit_verdict(const Culprit& culprit, const FileNames& files);

// What a report without culprits says: the target is finite, or bad on purpose, or bad and nobody was seen doing it.
std::string no_culprit_verdict(const Diagnosis& diagnosis, const FileNames& files);

// verdict() of text.h with the file names worked out already.
std::string verdict(const Diagnosis& diagnosis, const FileNames& files);

// "parameter net.4.running_var (buffer)". REQUIRES: culprit.origin != Origin::kOp.
std::string origin_text(const Culprit& culprit);

// The classes that the origin held, as far as an operand tells; "a non-finite value" if none does.
std::string origin_kinds(const Culprit& culprit);

}  // namespace sherlorch
