// The culprits' paths as a Graphviz digraph.
#pragma once

#include <string>

#include "core/diagnose/diagnosis.h"

namespace sherlorch {

// One node an op, however many paths lead through it: name, shape, module, line, and how many elements are bad.
// Culprits are filled red, the target has a double border, an origin that is no op is a note in front of its first
// reader. An edge carries the classes that flowed along it, red where the op at its head made something else of them.
// Long paths are folded as in the text report, so that Graphviz can lay them out. Ends with a newline.
std::string to_dot(const Diagnosis& diagnosis);

}  // namespace sherlorch
